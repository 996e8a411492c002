// Client values to protocol messages and back. Pure functions; the only place in client/ that reads message fields
// besides client.cc, and infer_stream.cc a parameter.
#ifndef SWIZZLE_CLIENT_WIRE_FORMAT_H_
#define SWIZZLE_CLIENT_WIRE_FORMAT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "proto/grpc_service.pb.h"

namespace swizzle::client {

// INVALID_ARGUMENT if a tensor's bytes do not fit its shape. Copies the tensors' bytes into raw_input_contents.
absl::Status ToWire(const InferRequest& request, inference::ModelInferRequest& message);

// INTERNAL if the server's answer does not hold together. Takes the message's bytes.
absl::StatusOr<InferResult> FromWire(inference::ModelInferResponse&& message);

// An answer of a stream; an error is in it.
StreamAnswer FromWire(inference::ModelStreamInferResponse&& message);

std::vector<ListedModel> FromWire(const inference::RepositoryIndexResponse& message);
ServerMetadata FromWire(const inference::ServerMetadataResponse& message);
ModelMetadata FromWire(const inference::ModelMetadataResponse& message);
std::vector<ModelStatistics> FromWire(const inference::ModelStatisticsResponse& message);
ModelConfig FromWire(const inference::ModelConfigResponse& message);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_WIRE_FORMAT_H_
