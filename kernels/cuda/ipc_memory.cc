#include "kernels/cuda/ipc_memory.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>

#include "kernels/base/check.h"
#include "kernels/cuda/runtime/cuda_status.h"

namespace swizzle {
namespace cuda {
namespace {

class IpcMemory final : public SharedDeviceMemory {
 public:
  explicit IpcMemory(int ordinal) : ordinal_(ordinal) {}

  ~IpcMemory() override {
    cudaSetDevice(ordinal_);
    if (queue_ != nullptr) cudaStreamDestroy(queue_);
    if (data_ != nullptr) cudaIpcCloseMemHandle(data_);
  }

  Status Open(std::string_view handle) {
    cudaIpcMemHandle_t opaque;
    if (handle.size() != sizeof(opaque)) {
      return InvalidArgument("a handle of CUDA's shared memory has ", sizeof(opaque), " bytes, not ", handle.size());
    }
    std::memcpy(&opaque, handle.data(), sizeof(opaque));
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal_), "use the GPU");
    if (const cudaError_t error = cudaIpcOpenMemHandle(&data_, opaque, cudaIpcMemLazyEnablePeerAccess);
        error != cudaSuccess) {
      data_ = nullptr;
      return InvalidArgument("CUDA does not open this handle on GPU ", ordinal_, " (",
                             CudaStatus(error, "open it").message(),
                             "); is it of memory that another process of this host made there by cudaMalloc, and has?");
    }
    SWIZZLE_RETURN_IF_ERROR(FindBytes());
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&queue_, cudaStreamNonBlocking), "make a stream");
    return absl::OkStatus();
  }

  int64_t bytes() const override { return bytes_; }

  Status Read(int64_t offset, std::span<std::byte> to) const override {
    return Copy(to.data(), At(offset), to.size(), cudaMemcpyDeviceToHost);
  }
  Status Write(int64_t offset, std::span<const std::byte> from) const override {
    return Copy(At(offset), from.data(), from.size(), cudaMemcpyHostToDevice);
  }

 private:
  std::byte* At(int64_t offset) const { return static_cast<std::byte*>(data_) + offset; }

  // To the end of what the other process allocated: only the driver's own interface tells.
  Status FindBytes() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    constexpr unsigned kSince = 3020;  // the version that has 64-bit sizes
    SWIZZLE_RETURN_IF_CUDA_ERROR(
        cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function, kSince, cudaEnableDefault, &found),
        "look for cuMemGetAddressRange");
    SWIZZLE_CHECK(found == cudaDriverEntryPointSuccess);
    CUdeviceptr base = 0;
    size_t size = 0;
    const auto data = reinterpret_cast<CUdeviceptr>(data_);
    const CUresult result = reinterpret_cast<decltype(&cuMemGetAddressRange)>(function)(&base, &size, data);
    if (result != CUDA_SUCCESS) return MakeError(StatusCode::kInternal, "CUDA does not tell how large it is");
    bytes_ = static_cast<int64_t>(base + size - data);
    return absl::OkStatus();
  }

  Status Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) const {
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal_), "use the GPU");
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to, from, bytes, kind, queue_), "copy from or to shared memory");
    return CudaStatus(cudaStreamSynchronize(queue_), "copy from or to shared memory");
  }

  const int ordinal_;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  cudaStream_t queue_ = nullptr;
};

}  // namespace
}  // namespace cuda

StatusOr<std::unique_ptr<SharedDeviceMemory>> OpenCudaIpcMemory(int ordinal, std::string_view handle) {
  auto memory = std::make_unique<cuda::IpcMemory>(ordinal);
  SWIZZLE_RETURN_IF_ERROR(memory->Open(handle));
  return memory;
}

}  // namespace swizzle
