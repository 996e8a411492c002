// How busy GPUs are, and what power they take, as NVIDIA's driver tells it (NVML).
//
// The driver's library is opened when the server runs, where there is one: it comes with the driver, and nothing of the
// build depends on it. It tells of all GPUs that it shows to this process, whichever of them models run on.
#ifndef SWIZZLE_SERVER_TELEMETRY_GPU_SENSORS_H_
#define SWIZZLE_SERVER_TELEMETRY_GPU_SENSORS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace swizzle {

// What a GPU doesn't tell is not there.
struct GpuReading {
  std::string uuid;                                 // "GPU-..."
  std::optional<double> utilization;                // share of the time in which something ran, from 0 to 1
  std::optional<double> memory_used, memory_total;  // bytes
  std::optional<double> power_watts, power_limit_watts;
  std::optional<double> energy_joules;  // since the driver was loaded
};

// Thread-safe.
class GpuSensors {
 public:
  virtual ~GpuSensors() = default;

  // In the driver's order. Takes some milliseconds.
  virtual std::vector<GpuReading> Read() const = 0;
};

// Null where `library` can't be opened, or says that there is no driver.
std::unique_ptr<GpuSensors> OpenGpuSensors(const char* library = "libnvidia-ml.so.1");

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_GPU_SENSORS_H_
