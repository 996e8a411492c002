// The devices that models run on, as --device names them.
#ifndef SWIZZLE_KERNELS_DEVICES_H_
#define SWIZZLE_KERNELS_DEVICES_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/backend/device_functions.h"

namespace swizzle {

// What --device says. GPUs by CUDA's numbers, each once; without numbers, all that the process sees.
struct DeviceChoice {
  bool cpu_if_none = false;  // "auto": the CPU where there is no GPU
  bool gpus = false;
  std::vector<int> ordinals;
};
// INVALID_ARGUMENT unless `text` is auto, cpu, cuda, or cuda: and numbers with commas between.
StatusOr<DeviceChoice> ParseDevice(std::string_view text);
// The GPUs that are to be opened, where the process sees so many. REQUIRES: choice.gpus.
std::vector<int> OrdinalsOf(const DeviceChoice& choice, int seen);

// Thread-safe once opened; outlives every model.
class Devices {
 public:
  // Errors are those of ParseDevice and NewCudaBackend.
  static StatusOr<Devices> Open(std::string_view device);
  // For tests: models run on this, or on GPUs where there are any, whose numbers are 0, 1 and so on.
  explicit Devices(std::unique_ptr<Backend> cpu, std::vector<std::unique_ptr<Backend>> gpus = {},
                   const DeviceFunctions* functions = nullptr);

  Backend& cpu() const { return *cpu_; }
  std::vector<Backend*> gpus() const;
  // The GPUs of these numbers of CUDA's, in that order. FAILED_PRECONDITION for one that was not opened.
  StatusOr<std::vector<Backend*>> GpusOf(std::span<const int> numbers) const;
  // What models run on by default, at least one.
  Backend& main() const { return gpus_.empty() ? *cpu_ : *gpus_.front(); }
  // Null where it is the CPU.
  DeviceBackend* main_gpu() const;
  // What GPUs compute beside their rows; null where there are none.
  const DeviceFunctions* functions() const { return functions_; }
  // Why "auto" took the CPU; else empty.
  const std::string& reason() const { return reason_; }
  // The first error after which a device computes nothing any more.
  Status health() const;

 private:
  Devices() = default;

  std::unique_ptr<Backend> cpu_;
  std::vector<std::unique_ptr<Backend>> gpus_;
  std::vector<int> numbers_;  // of gpus_
  const DeviceFunctions* functions_ = nullptr;
  std::string reason_;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_DEVICES_H_
