// Requests for vectors and scores of texts. A first byte says of which endpoint; the rest is JSON. What is read is a
// tensor of strings, of as many as its rows have.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/check.h"
#include "server/model/string_tensor.h"
#include "server/rest/text_json.h"

namespace swizzle {
namespace {

void Read(std::string_view data) {
  if (data.empty()) return;
  const auto endpoint = static_cast<TextEndpoint>(static_cast<uint8_t>(data[0]) % 5);
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
