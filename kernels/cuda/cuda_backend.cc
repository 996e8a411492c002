#include "kernels/cuda/cuda_backend.h"

#include <cuda_runtime.h>

#include <cstring>

#include "kernels/cuda/functions/functions.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/runtime/cuda_status.h"
#include "kernels/cuda/runtime/cuda_stream.h"
#include "kernels/cuda/runtime/device_facts.h"

namespace swizzle {
namespace cuda {
namespace {

// Device memory comes from the device's own pool, which keeps what is freed: plans are made by allocating and freeing
// operands for each kernel that is measured.
class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(Device& device, void* data, size_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  ~DeviceBuffer() override {
    device_.Use();
    cudaFreeAsync(data_, cudaStreamLegacy);
  }
  std::byte* data() override { return static_cast<std::byte*>(data_); }
  size_t bytes() const override { return bytes_; }

 private:
  Device& device_;
  void* const data_;
  const size_t bytes_;
};

class PinnedBuffer final : public Buffer {
 public:
  PinnedBuffer(void* data, size_t bytes) : data_(data), bytes_(bytes) {}
  ~PinnedBuffer() override { cudaFreeHost(data_); }
  std::byte* data() override { return static_cast<std::byte*>(data_); }
  size_t bytes() const override { return bytes_; }

 private:
  void* const data_;
  const size_t bytes_;
};

// Bits of kernel rows for a device of this compute capability.
uint32_t FeaturesOf(int major, int minor) {
  const int capability = 10 * major + minor;
  uint32_t features = kAnySm;
  if (capability >= 80) features |= kSm80;
  if (capability == 90) features |= kSm90a;
  return features;
}

constexpr int kOldestCapability = 75;

class CudaBackend final : public DeviceBackend, public AlgorithmChooser {
 public:
  static StatusOr<std::unique_ptr<Backend>> Make(int ordinal) {
    auto backend = std::make_unique<CudaBackend>();
    SWIZZLE_RETURN_IF_ERROR(backend->Init(ordinal));
    return backend;
  }

  std::string_view name() const override { return name_; }
  std::string device_name() const override { return device_name_; }
  uint32_t features() const override { return features_; }
  std::string features_text() const override { return features_text_; }
  std::span<const Kernel> kernels() const override { return KernelTable(); }
  bool Computes(Precision) const override { return true; }
  Throughput throughput(Precision precision) const override { return ThroughputOf(speed_, precision); }

  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    device_.Use();
    void* data = nullptr;
    const size_t held = bytes > 0 ? bytes : 1;
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaMallocAsync(&data, held, cudaStreamLegacy),
                                 Concat("allocate ", bytes, " bytes on ", device_name_));
    auto buffer = std::make_unique<DeviceBuffer>(device_, data, bytes);
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaMemsetAsync(data, 0, held, cudaStreamLegacy), "zero memory");
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(cudaStreamLegacy), "zero memory");
    return buffer;
  }

  StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override {
    device_.Use();
    void* data = nullptr;
    const size_t held = bytes > 0 ? bytes : 1;
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaMallocHost(&data, held), Concat("pin ", bytes, " bytes of host memory"));
    auto buffer = std::make_unique<PinnedBuffer>(data, bytes);
    std::memset(data, 0, held);
    return buffer;
  }

  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    device_.Use();
    return kernel.prepare(weight, problem);
  }

  StatusOr<std::unique_ptr<DeviceStream>> NewDeviceStream() override { return CudaStream::Make(device_); }

  Status health() const override {
    memory();  // asks the device: nothing else may have since it was lost
    const auto error = static_cast<cudaError_t>(device_.sticky_error.load());
    if (error == cudaSuccess) return absl::OkStatus();
    return Annotate(CudaStatus(error, "go on"),
                    Concat(device_name_, " is lost to this process, which has to be restarted"));
  }

  AlgorithmChoices& algorithm_choices() override { return device_.algorithms; }

  std::optional<DeviceMemory> memory() const override {
    device_.Use();
    size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    device_.Note(error);
    if (!CudaStatus(error, "ask for free memory").ok()) return std::nullopt;
    return DeviceMemory{.used = static_cast<int64_t>(total - free), .total = static_cast<int64_t>(total)};
  }

 private:
  Status Init(int ordinal) {
    SWIZZLE_ASSIGN_OR_RETURN(const int count, CountCudaDevices());
    if (ordinal < 0 || ordinal >= count) {
      return InvalidArgument("there is no GPU ", ordinal, "; this process sees ", count, ", from 0");
    }
    cudaDeviceProp properties;
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, ordinal), Concat("ask GPU ", ordinal));
    if (10 * properties.major + properties.minor < kOldestCapability) {
      return Unimplemented(properties.name, " has compute capability ", properties.major, ".", properties.minor,
                           "; 7.5 is the least; the device 'cpu' needs none");
    }
    device_.ordinal = ordinal;
    device_.multiprocessors = properties.multiProcessorCount;
    device_.l2_bytes = static_cast<size_t>(properties.l2CacheSize);
    speed_ = FactsOf(ordinal).speed;
    device_.Use();
    // Whether the code for this device can be loaded at all, and the context, which costs a moment.
    SWIZZLE_RETURN_IF_CUDA_ERROR(cudaFree(nullptr), Concat("use GPU ", ordinal));
    KeepFreedMemory();
    name_ = Concat("cuda:", ordinal);
    device_name_ = properties.name;
    features_ = FeaturesOf(properties.major, properties.minor);
    int driver = 0;
    cudaDriverGetVersion(&driver);
    features_text_ =
        Concat("sm_", properties.major, properties.minor, " driver ", driver / 1000, ".", driver % 1000 / 10);
    return absl::OkStatus();
  }

  void KeepFreedMemory() {
    cudaMemPool_t pool = nullptr;
    if (cudaDeviceGetDefaultMemPool(&pool, device_.ordinal) != cudaSuccess) return;
    uint64_t most = uint64_t{256} << 20;
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most);
  }

  Device device_;
  DeviceSpeed speed_;
  std::string name_, device_name_, features_text_;
  uint32_t features_ = 0;
};

}  // namespace
}  // namespace cuda

StatusOr<int> CountCudaDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0) {
      return MakeError(StatusCode::kUnavailable,
                       "there is no NVIDIA driver on this machine; the device 'cpu' needs none");
    }
    return MakeError(StatusCode::kUnavailable, "the NVIDIA driver is for CUDA ", driver / 1000, ".", driver % 1000 / 10,
                     "; this build needs ", CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10,
                     ": update the driver, or choose the device 'cpu'");
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    return MakeError(StatusCode::kUnavailable, "this process sees no NVIDIA GPU; the device 'cpu' needs none");
  }
  if (error != cudaSuccess) {
    return MakeError(StatusCode::kUnavailable, std::string(cuda::CudaStatus(error, "look for GPUs").message()));
  }
  return count;
}

StatusOr<std::unique_ptr<Backend>> NewCudaBackend(int ordinal) { return cuda::CudaBackend::Make(ordinal); }

StatusOr<const DeviceFunctions*> CudaDeviceFunctions() {
  static const cuda::CudaFunctions kFunctions;
  return &kFunctions;
}

}  // namespace swizzle
