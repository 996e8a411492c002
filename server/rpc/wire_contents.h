// The elements of a tensor as ModelInfer's messages hold them: raw bytes, or fields by datatype, of which some are
// wider than the elements are. Functions only; what they are given is a client's.
#ifndef SWIZZLE_SERVER_RPC_WIRE_CONTENTS_H_
#define SWIZZLE_SERVER_RPC_WIRE_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/dtype.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {

// The field of InferTensorContents that belongs to a datatype; empty where there is none.
std::string_view ContentsField(DType dtype);

int64_t ElementsIn(const inference::InferTensorContents& contents, DType dtype);
int64_t ElementsInAllFields(const inference::InferTensorContents& contents);

// The elements as they lie in the message, for datatypes whose field has the tensor's own element type.
std::span<const std::byte> ContentsInPlace(const inference::InferTensorContents& contents, DType dtype);

// Whether the field's elements are wider than the tensor's, or are strings.
bool NeedsConversion(DType dtype);

// The tensor's bytes. Nothing if an element is out of the datatype's range. REQUIRES: NeedsConversion(dtype).
std::optional<std::string> ConvertedContents(const inference::InferTensorContents& contents, DType dtype);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_WIRE_CONTENTS_H_
