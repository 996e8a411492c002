// The inputs of a request: read from files, or drawn at random from what a model's metadata says.
#ifndef SWIZZLE_CLIENT_CLI_INPUT_H_
#define SWIZZLE_CLIENT_CLI_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace swizzle::client {

// Tensors of arguments "NAME=FILE.npy". Errors are usage errors.
absl::StatusOr<std::vector<Tensor>> ReadInputs(const std::vector<std::string>& arguments);

// One tensor per input: numbers in [0, 1), integers 0 or 1, the same for the same seed. `batch` takes the place of a
// leading free dimension, and has to be 1 where there is none. A usage error where another dimension is free, or for
// BYTES: only the caller knows what fits there.
absl::StatusOr<std::vector<Tensor>> DrawInputs(const std::vector<TensorMetadata>& inputs, int64_t batch, uint64_t seed);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_INPUT_H_
