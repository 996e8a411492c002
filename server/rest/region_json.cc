#include "server/rest/region_json.h"

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "proto/message_json.h"

namespace swizzle {
namespace {

StatusOr<nlohmann::json> ReadObject(std::string_view text) {
  nlohmann::json read = nlohmann::json::parse(text, nullptr, false);
  if (!read.is_object()) return InvalidArgument("the body must be a JSON object");
  return read;
}

StatusOr<std::string> TextIn(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found != object.end() && found->is_string()) return found->get<std::string>();
  return InvalidArgument("'", name, "' must be there, and a string");
}

StatusOr<uint64_t> NumberIn(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found != object.end() && found->is_number_unsigned()) return found->get<uint64_t>();
  return InvalidArgument("'", name, "' must be there, and a whole number from 0 on");
}

// Maps of messages have no order.
template <typename Regions>
std::string Write(const Regions& regions) {
  std::map<std::string, std::string> written;
  for (const auto& [name, region] : regions) written[name] = MessageJson(region);
  std::string text = "[";
  for (const auto& [name, its] : written) text += (text.size() > 1 ? "," : "") + its;
  return text + "]";
}

}  // namespace

StatusOr<inference::SystemSharedMemoryRegisterRequest> ReadSystemRegion(std::string_view text, std::string_view name) {
  SWIZZLE_ASSIGN_OR_RETURN(const nlohmann::json read, ReadObject(text));
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name(std::string(name));
  SWIZZLE_ASSIGN_OR_RETURN(*request.mutable_key(), TextIn(read, "key"));
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t bytes, NumberIn(read, "byte_size"));
  request.set_byte_size(bytes);
  if (!read.contains("offset")) return request;
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t offset, NumberIn(read, "offset"));
  request.set_offset(offset);
  return request;
}

StatusOr<inference::CudaSharedMemoryRegisterRequest> ReadCudaRegion(std::string_view text, std::string_view name) {
  SWIZZLE_ASSIGN_OR_RETURN(const nlohmann::json read, ReadObject(text));
  inference::CudaSharedMemoryRegisterRequest request;
  request.set_name(std::string(name));
  const auto handle = read.find("raw_handle");
  if (handle == read.end() || !handle->is_object()) {
    return InvalidArgument("'raw_handle' must be there, and an object that has 'b64'");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string encoded, TextIn(*handle, "b64"));
  if (!absl::Base64Unescape(encoded, request.mutable_raw_handle())) return InvalidArgument("'b64' is no base64");
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t device, NumberIn(read, "device_id"));
  if (device > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return InvalidArgument("there is no device ", device);
  }
  request.set_device_id(static_cast<int64_t>(device));
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t bytes, NumberIn(read, "byte_size"));
  request.set_byte_size(bytes);
  return request;
}

std::string WriteRegions(const inference::SystemSharedMemoryStatusResponse& regions) {
  return Write(regions.regions());
}

std::string WriteRegions(const inference::CudaSharedMemoryStatusResponse& regions) { return Write(regions.regions()); }

}  // namespace swizzle
