// A CUDA stream with what kernels need beside it. Single-owner.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_CUDA_STREAM_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_CUDA_STREAM_H_

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "kernels/backend/algorithm_choices.h"
#include "kernels/backend/backend.h"
#include "kernels/cuda/runtime/device_array.h"

namespace swizzle::cuda {

// One device: what all its streams share. Thread-safe.
struct Device {
  int ordinal = 0;
  int multiprocessors = 0;
  size_t l2_bytes = 0;
  mutable std::atomic<int> sticky_error = cudaSuccess;  // the first one seen: see IsSticky
  AlgorithmChoices algorithms;

  // Makes it the calling thread's device.
  void Use() const { cudaSetDevice(ordinal); }
  // Remembers an error if it is sticky.
  void Note(cudaError_t error) const;
};

class CudaStream final : public DeviceStream {
 public:
  static StatusOr<std::unique_ptr<CudaStream>> Make(Device& device);
  ~CudaStream() override;

  // REQUIRES: the stream comes from a CUDA backend, as every stream does that a CUDA kernel is given.
  static CudaStream& From(Stream& stream) { return static_cast<CudaStream&>(stream); }

  cudaStream_t queue() const { return queue_; }
  const Device& device() const { return device_; }
  cublasLtHandle_t cublas() const { return cublas_; }
  // Memory for cuBLAS, of this stream alone.
  std::span<std::byte> cublas_workspace() { return {cublas_workspace_.data(), cublas_workspace_.size()}; }
  // The algorithms of products that have a choice, as far as this stream has run them (cublas_matmul.cc).
  std::map<std::string, cublasLtMatmulAlgo_t>& algorithms() { return algorithms_; }
  AlgorithmChoices& choices() { return device_.algorithms; }
  // Whether a product that has no choice is to make one now, in work that Time runs for that.
  bool MustChoose() {
    met_open_ = true;
    return chooses_;
  }
  // cuDNN's handle, owned; null until a kernel needs it and puts it here.
  std::shared_ptr<void>& cudnn() { return cudnn_; }
  // For kernels, which return nothing: the first error is what Time, Record or Synchronize next returns.
  void Report(const Status& status) { reported_.Update(status); }

  int threads() const override { return 1; }
  void Copy(void* to, const void* from, size_t bytes) override;
  void Run(Work work) override;
  StatusOr<absl::Duration> Time(Work work, Operands recent) override;
  // The same, but that nothing is chosen.
  StatusOr<absl::Duration> TimeAsItIs(Work work, Operands recent);
  StatusOr<std::unique_ptr<Recording>> Record(Work work) override;
  Status Synchronize() override;

 private:
  explicit CudaStream(Device& device) : device_(device) {}
  Status Init();
  // Note and, as a Status, return what went wrong since the last call, reported errors included.
  Status Check(cudaError_t error, std::string_view what);
  // How long QueueLeadIn's kernel takes alone.
  StatusOr<absl::Duration> LeadIn();

  Device& device_;
  cudaStream_t queue_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  cublasLtHandle_t cublas_ = nullptr;
  DeviceArray<std::byte> cublas_workspace_;
  std::map<std::string, cublasLtMatmulAlgo_t> algorithms_;
  bool chooses_ = false;   // work that runs now is to choose
  bool met_open_ = false;  // work has met a product without a choice since this was last set to false
  std::shared_ptr<void> cudnn_;
  Status reported_;
  DeviceArray<std::byte> flush_;  // larger than the second cache; made when first something is timed
  absl::Duration lead_in_;        // zero until then
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_CUDA_STREAM_H_
