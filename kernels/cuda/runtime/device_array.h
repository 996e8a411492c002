// An array in device memory.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_DEVICE_ARRAY_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_DEVICE_ARRAY_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <utility>

#include "kernels/cuda/runtime/cuda_status.h"

namespace swizzle::cuda {

// Owns `size` elements on the device that was current when it was made; aligned to 256 bytes. Movable.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  // Uninitialised. An empty array has no memory.
  static StatusOr<DeviceArray> Allocate(size_t size) {
    DeviceArray array;
    if (size == 0) return array;
    void* data = nullptr;
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaMalloc(&data, size * sizeof(T)), Concat("allocate ", size * sizeof(T), " bytes"));
    array.data_ = static_cast<T*>(data);
    array.size_ = size;
    return array;
  }

  // A copy of `values`; waits until it is made.
  static StatusOr<DeviceArray> Upload(std::span<const T> values) {
    SWIZZLE_ASSIGN_OR_RETURN(DeviceArray array, Allocate(values.size()));
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaMemcpy(array.data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
                                 "copy to the device");
    // cudaMemcpy from memory that is not pinned may return before the last part is on the device, and other streams do
    // not wait for this one.
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(cudaStreamLegacy), "copy to the device");
    return array;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_DEVICE_ARRAY_H_
