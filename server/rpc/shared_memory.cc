#include "server/rpc/shared_memory.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "model_loader/files/printable_name.h"
#include "server/rpc/infer_parameters.h"

namespace swizzle {
namespace {

using inference::InferParameter;
using Parameters = SharedBytes::Parameters;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr size_t kMostRegions = 256;  // each is an open file, or a mapping of a GPU's memory
constexpr char kRegionKey[] = "shared_memory_region", kBytesKey[] = "shared_memory_byte_size",
               kOffsetKey[] = "shared_memory_offset";

int64_t AtMost(uint64_t value) { return static_cast<int64_t>(std::min<uint64_t>(value, uint64_t{kMost})); }

// Of a parameter that is a number from 0 on; `absent` where it is not there.
StatusOr<int64_t> NumberOf(const Parameters& parameters, const char* key, int64_t absent) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) return absent;
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t number, UnsignedParameter(key, found->second));
  return AtMost(number);
}

}  // namespace

void SharedBytes::NameIn(Parameters& parameters) const {
  parameters[kRegionKey].set_string_param(name);
  parameters[kBytesKey].set_int64_param(bytes);
  if (offset != 0) parameters[kOffsetKey].set_int64_param(offset);
}

Status SharedRegion::Check(int64_t offset, int64_t bytes) const {
  if (offset >= 0 && bytes >= 0 && IsWithin(offset, bytes, bytes_)) return absl::OkStatus();
  return InvalidArgument("shared memory region ", QuotedName(name_), " has ", bytes_, " bytes; ", bytes, " from byte ",
                         offset, " on are not all in it");
}

Status SharedRegion::Name(const Status& status) const {
  return status.ok() ? status : Annotate(status, Concat("shared memory region ", QuotedName(name_)));
}

Status SharedRegion::Read(int64_t offset, std::span<std::byte> to) const {
  SWIZZLE_RETURN_IF_ERROR(Check(offset, static_cast<int64_t>(to.size())));
  return Name(storage_->Read(offset, to));
}

Status SharedRegion::Write(int64_t offset, std::span<const std::byte> from) const {
  SWIZZLE_RETURN_IF_ERROR(Check(offset, static_cast<int64_t>(from.size())));
  return Name(storage_->Write(offset, from));
}

Status SharedRegions::CheckFiles() const {
  if (serves_files()) return absl::OkStatus();
  return Unimplemented("this server takes no shared memory; send tensors in messages");
}

Status SharedRegions::CheckDevices() const {
  if (serves_devices()) return absl::OkStatus();
  return Unimplemented("this server takes no shared memory of GPUs; send tensors in messages");
}

SharedRegions::Load SharedRegions::load() const {
  const MutexLock lock(mutex_);
  return {static_cast<int64_t>(regions_.size()), registered_bytes_, enabled() ? most_bytes_ : 0};
}

Status SharedRegions::Register(const inference::SystemSharedMemoryRegisterRequest& request) {
  SWIZZLE_RETURN_IF_ERROR(CheckFiles());
  SWIZZLE_RETURN_IF_ERROR(CheckName(request.name(), "the name of a shared memory region"));
  const int64_t offset = AtMost(request.offset()), bytes = AtMost(request.byte_size());
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedStorage> file, OpenSharedFile(request.key(), prefix_, offset, bytes));
  return Add(request.name(), SharedRegion::InFile{request.key(), offset}, std::move(file), bytes);
}

Status SharedRegions::Register(const inference::CudaSharedMemoryRegisterRequest& request) {
  SWIZZLE_RETURN_IF_ERROR(CheckDevices());
  SWIZZLE_RETURN_IF_ERROR(CheckName(request.name(), "the name of a shared memory region"));
  const int64_t bytes = AtMost(request.byte_size());
  StatusOr<std::unique_ptr<SharedStorage>> memory =
      OpenSharedDevice(open_device_, request.device_id(), request.raw_handle(), bytes);
  if (!memory.ok()) return Annotate(memory.status(), Concat("shared memory region ", QuotedName(request.name())));
  return Add(request.name(), SharedRegion::OnDevice{request.device_id()}, *std::move(memory), bytes);
}

Status SharedRegions::Add(const std::string& name, SharedRegion::Place place, std::unique_ptr<SharedStorage> storage,
                          int64_t bytes) {
  const auto region = std::make_shared<const SharedRegion>(name, std::move(place), std::move(storage), bytes);
  const MutexLock lock(mutex_);
  if (regions_.contains(name)) {
    return MakeError(StatusCode::kAlreadyExists, "shared memory region ", QuotedName(name),
                     " is registered already; unregister it first");
  }
  if (regions_.size() >= kMostRegions || !IsWithin(registered_bytes_, bytes, most_bytes_)) {
    return MakeError(StatusCode::kResourceExhausted, "there are ", regions_.size(), " shared memory regions of ",
                     registered_bytes_, " bytes; the server takes ", kMostRegions, " of ", most_bytes_, " together");
  }
  regions_[name] = region;
  registered_bytes_ += bytes;
  return absl::OkStatus();
}

template <typename Kind>
void SharedRegions::Remove(const std::string& name) {
  std::vector<std::shared_ptr<const SharedRegion>> removed;  // closed without the lock
  const MutexLock lock(mutex_);
  std::erase_if(regions_, [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if ((!name.empty() && entry.first != name) || !std::holds_alternative<Kind>(entry.second->place())) return false;
    registered_bytes_ -= entry.second->bytes();
    removed.push_back(entry.second);
    return true;
  });
}

Status SharedRegions::Unregister(const inference::SystemSharedMemoryUnregisterRequest& request) {
  SWIZZLE_RETURN_IF_ERROR(CheckFiles());
  Remove<SharedRegion::InFile>(request.name());
  return absl::OkStatus();
}

Status SharedRegions::Unregister(const inference::CudaSharedMemoryUnregisterRequest& request) {
  SWIZZLE_RETURN_IF_ERROR(CheckDevices());
  Remove<SharedRegion::OnDevice>(request.name());
  return absl::OkStatus();
}

// fill(what the response says of it, the region's place)
template <typename Kind, typename Response, typename Fill>
Status SharedRegions::DescribeAll(const std::string& name, Response& response, Fill fill) const {
  const MutexLock lock(mutex_);
  for (const auto& [known, region] : regions_) {
    const auto* const place = std::get_if<Kind>(&region->place());
    if (place == nullptr || (!name.empty() && known != name)) continue;
    auto& its = (*response.mutable_regions())[known];
    its.set_name(known);
    its.set_byte_size(static_cast<uint64_t>(region->bytes()));
    fill(its, *place);
  }
  if (name.empty() || !response.regions().empty()) return absl::OkStatus();
  return MakeError(StatusCode::kNotFound, "there is no shared memory region ", QuotedName(name));
}

Status SharedRegions::Describe(const std::string& name, inference::SystemSharedMemoryStatusResponse& response) const {
  SWIZZLE_RETURN_IF_ERROR(CheckFiles());
  return DescribeAll<SharedRegion::InFile>(name, response, [](auto& its, const SharedRegion::InFile& place) {
    its.set_key(place.key);
    its.set_offset(static_cast<uint64_t>(place.offset));
  });
}

Status SharedRegions::Describe(const std::string& name, inference::CudaSharedMemoryStatusResponse& response) const {
  SWIZZLE_RETURN_IF_ERROR(CheckDevices());
  return DescribeAll<SharedRegion::OnDevice>(name, response, [](auto& its, const SharedRegion::OnDevice& place) {
    its.set_device_id(static_cast<uint64_t>(place.device));
  });
}

StatusOr<SharedBytes> SharedRegions::Find(const Parameters& parameters) const {
  SharedBytes shared;
  const auto found = parameters.find(kRegionKey);
  if (found == parameters.end()) return shared;
  if (!enabled()) return CheckFiles();
  shared.name = found->second.string_param();
  SWIZZLE_ASSIGN_OR_RETURN(shared.offset, NumberOf(parameters, kOffsetKey, 0));
  SWIZZLE_ASSIGN_OR_RETURN(shared.bytes, NumberOf(parameters, kBytesKey, -1));
  if (shared.bytes < 0) return InvalidArgument("parameter '", kBytesKey, "' is missing beside '", kRegionKey, "'");
  {
    const MutexLock lock(mutex_);
    if (const auto region = regions_.find(shared.name); region != regions_.end()) shared.region = region->second;
  }
  if (shared.region == nullptr) {
    return InvalidArgument("there is no shared memory region ", QuotedName(shared.name), "; register it first");
  }
  SWIZZLE_RETURN_IF_ERROR(shared.region->Check(shared.offset, shared.bytes));
  return shared;
}

int64_t SharedInputBytes(const inference::ModelInferRequest& request) {
  int64_t all = 0;
  for (const auto& input : request.inputs()) {
    if (!input.parameters().contains(kRegionKey)) continue;
    const StatusOr<int64_t> bytes = NumberOf(input.parameters(), kBytesKey, 0);
    if (bytes.ok() && __builtin_add_overflow(all, *bytes, &all)) return kMost;
  }
  return all;
}

}  // namespace swizzle
