// Copies of boxes between arrays: what moving elements comes down to.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_BOX_COPY_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_BOX_COPY_H_

#include <cstddef>
#include <span>

#include "kernels/backend/backend.h"
#include "kernels/base/tensor.h"
#include "model_loader/interpreter/values/device.h"

namespace swizzle::interpreter {

// to[index . to_strides] = from[index . from_strides] for every index below `dims`; strides are in elements. As fast as
// may be where the last dimension is dense in `to`.
struct BoxCopy {
  Shape dims, from_strides, to_strides;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
};

// Of elements of 1, 2, 4 or 8 bytes; no box writes what another writes. Shared among the stream's threads where there
// is enough to copy. Thread-safe.
void CopyBoxes(Stream& stream, size_t element_bytes, std::span<const BoxCopy> boxes);

// The same where all lies on a device. UNIMPLEMENTED for more dimensions than its functions take.
Status CopyBoxesOnDevice(Device& device, size_t element_bytes, std::span<const BoxCopy> boxes);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_BOX_COPY_H_
