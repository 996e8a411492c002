// An output that a request asks for, and how. Value type.
#ifndef SWIZZLE_SERVER_RPC_REQUESTED_OUTPUT_H_
#define SWIZZLE_SERVER_RPC_REQUESTED_OUTPUT_H_

#include <cstddef>
#include <cstdint>

namespace swizzle {

struct RequestedOutput {
  size_t index = 0;     // into ModelSpec::outputs
  int64_t classes = 0;  // the most of its best classes instead of the tensor (classification.h); 0: the tensor

  friend bool operator==(const RequestedOutput&, const RequestedOutput&) = default;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_REQUESTED_OUTPUT_H_
