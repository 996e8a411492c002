// The response to ModelInfer as bytes, and how many they are. Functions only.
#ifndef SWIZZLE_SERVER_RPC_WIRE_RESPONSE_H_
#define SWIZZLE_SERVER_RPC_WIRE_RESPONSE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <span>

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "server/model/model.h"
#include "server/model/request.h"
#include "server/rpc/requested_output.h"

namespace swizzle {

// The bytes of all outputs that the request will have, as far as shapes tell: what a model leaves open is taken to be
// as long as what the request's inputs leave open, and all of it together no larger than a row of these. No output
// counts as more than `most` + 1. Texts of classes that are asked for count beside them. INVALID_ARGUMENT if `outputs`
// are certain to be more than `most`.
StatusOr<int64_t> ResponseBytes(const ModelSpec& spec, const Request& request, std::span<const RequestedOutput> outputs,
                                int64_t most);

int64_t BytesOf(const Result& result);

// RESOURCE_EXHAUSTED if the outputs at `outputs` turned out to be more than `most`.
Status CheckResult(const ModelSpec& spec, const Result& result, std::span<const RequestedOutput> outputs, int64_t most);

// The tag and the length of a field of bytes.
grpc::Slice FieldHead(int field, size_t length);
// The text without a copy.
grpc::Slice OwningSlice(std::string text);

// Fills `bytes`. Large outputs are taken out of `response`, and not copied.
void SerializeInfer(inference::ModelInferResponse& response, grpc::ByteBuffer& bytes);
// Likewise, of a ModelStreamInferResponse with this response in it.
void SerializeStreamInfer(inference::ModelInferResponse& response, grpc::ByteBuffer& bytes);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_WIRE_RESPONSE_H_
