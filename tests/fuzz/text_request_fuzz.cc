// Requests for vectors, scores and tokens of texts, and for texts of ids. A first byte says of which endpoint; the
// rest is JSON. What is read is a tensor of strings, of as many as its rows have, or ids.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "kernels/base/check.h"
#include "server/model/string_tensor.h"
#include "server/rest/ids_json.h"
#include "server/rest/text_json.h"

namespace swizzle {
namespace {

void ReadIds(std::string_view json) {
  const auto request = ReadIdsRequest(json);
  SWIZZLE_CHECK(request.ok() || request.status().message().size() < 4096);
  if (!request.ok()) return;
  SWIZZLE_CHECK(!request->ends.empty() && request->ends.back() == request->ids.size());
  size_t before = 0;
  for (const size_t end : request->ends) SWIZZLE_CHECK(std::exchange(before, end) < end);
}

void Read(std::string_view data) {
  if (data.empty()) return;
  const auto endpoint = static_cast<TextEndpoint>(static_cast<uint8_t>(data[0]) % 8);
  if (endpoint == TextEndpoint::kTeiDecode) return ReadIds(data.substr(1));
  const auto request = ReadTextRequest(endpoint, data.substr(1));
  if (!request.ok()) {
    SWIZZLE_CHECK(request.status().code() == StatusCode::kInvalidArgument);
    SWIZZLE_CHECK(request.status().message().size() < 4096);
    SWIZZLE_CHECK(!TextError(endpoint, request.status()).body.at(0).empty());
    return;
  }
  const bool predicts = endpoint == TextEndpoint::kTeiPredict;
  SWIZZLE_CHECK(request->count >= 1 && (!request->single || request->count == 1));
  SWIZZLE_CHECK(request->pairs.size() == (predicts ? static_cast<size_t>(request->count) : 0));
  SWIZZLE_CHECK(request->query.has_value() == (endpoint == TextEndpoint::kTeiRerank));
  int64_t elements = 0;
  for (int64_t row = 0; row < request->count; ++row) elements += request->is_pair(row) ? 2 : 1;
  SWIZZLE_CHECK(IsStringTensor(std::as_bytes(std::span(request->texts)), elements));
  SWIZZLE_CHECK(request->texts.size() <= static_cast<size_t>(kTextJsonMemory) * data.size());
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  swizzle::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
