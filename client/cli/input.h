// The inputs of a request: read from files, or drawn at random from what a model's metadata says.
#ifndef SWIZZLE_CLIENT_CLI_INPUT_H_
#define SWIZZLE_CLIENT_CLI_INPUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace swizzle::client {

// Tensors of arguments "NAME=FILE.npy". Errors are usage errors.
absl::StatusOr<std::vector<Tensor>> ReadInputs(const std::vector<std::string>& arguments);

// Shapes of arguments "NAME:D1,D2", by input. Errors are usage errors.
absl::StatusOr<std::map<std::string, Shape>> ParseShapes(const std::vector<std::string>& arguments);

// What is sent for an input for want of real data.
struct InputPlan {
  std::string name;
  std::string datatype;
  Shape shape;  // no dimension is free
  enum class Values {
    kAny,   // numbers in [0, 1), integers and Booleans 0 or 1
    kIds,   // from 0 on, below `ids`
    kOnes,  // a mask: all tokens count
    kTexts  // each of `words` common words
  } values = Values::kAny;
  int64_t ids = 0, words = 0;
};

struct PlanOptions {
  int64_t batch = 1;                         // in place of a leading free dimension; has to be 1 where there is none
  std::map<std::string, Shape> shapes = {};  // by input: all dimensions, or all but a leading free one
  int64_t tokens = 128;  // of sequences of no other length, where the server tells that there are such
  int64_t free = 0;      // what other free dimensions are; 0: that has to be said by `shapes`
};

// One plan per input. A usage error where a shape does not fit, a dimension is left free, or an input takes BYTES that
// are no texts to be encoded, and `strings` are not allowed: only the caller knows what fits there.
absl::StatusOr<std::vector<InputPlan>> PlanInputs(const ModelMetadata& metadata, const PlanOptions& options,
                                                  bool strings = false);

// Inputs are the same for the same seed; each string that is not of kTexts is "text". It is a usage error where one
// would be too large.
absl::StatusOr<std::vector<Tensor>> DrawInputs(const std::vector<InputPlan>& plans, uint64_t seed);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_INPUT_H_
