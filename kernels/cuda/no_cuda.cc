// Stands in for cuda_backend.cc in builds without CUDA.
#include "kernels/cuda/cuda_backend.h"

namespace swizzle {
namespace {

Status NoCuda() {
  return Unimplemented("this build has no CUDA backend; use --device=cpu, or build with nvcc on the PATH");
}

}  // namespace

StatusOr<int> CountCudaDevices() { return NoCuda(); }

StatusOr<std::unique_ptr<Backend>> NewCudaBackend(int) { return NoCuda(); }

}  // namespace swizzle
