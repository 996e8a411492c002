#include "server/telemetry/gpu_sensors.h"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace swizzle {
namespace {

// Of NVML's interface what is called here. 0 is success.
using Device = struct DeviceHandle*;
struct Utilization {
  unsigned int gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;  // bytes
};

template <typename... Arguments>
using Call = int (*)(Arguments...);

class Nvml final : public GpuSensors {
 public:
  explicit Nvml(void* library) : library_(library) {}
  ~Nvml() override {
    if (started_) shutdown_();
    dlclose(library_);
  }

  // Whether the library is what it should be, and finds its driver.
  bool Start() {
    const bool found = Find("nvmlInit_v2", init_) && Find("nvmlShutdown", shutdown_) &&
                       Find("nvmlDeviceGetCount_v2", count_) && Find("nvmlDeviceGetHandleByIndex_v2", device_) &&
                       Find("nvmlDeviceGetUUID", uuid_) && Find("nvmlDeviceGetUtilizationRates", utilization_) &&
                       Find("nvmlDeviceGetMemoryInfo", memory_) && Find("nvmlDeviceGetPowerUsage", power_) &&
                       Find("nvmlDeviceGetEnforcedPowerLimit", power_limit_) &&
                       Find("nvmlDeviceGetTotalEnergyConsumption", energy_);
    started_ = found && init_() == 0;
    return started_;
  }

  std::vector<GpuReading> Read() const override {
    std::vector<GpuReading> all;
    unsigned int count = 0;
    if (count_(&count) != 0) return all;
    for (unsigned int i = 0; i < count; ++i) {
      Device device = nullptr;
      std::array<char, 96> uuid = {};
      if (device_(i, &device) != 0 || uuid_(device, uuid.data(), uuid.size()) != 0) continue;
      uuid.back() = '\0';
      all.push_back(ReadOne(device, uuid.data()));
    }
    return all;
  }

 private:
  template <typename Function>
  bool Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }

  // In units of which `scale` make one of the result's.
  template <typename Number>
  static std::optional<double> Ask(Call<Device, Number*> call, Device device, double scale) {
    Number value = 0;
    if (call(device, &value) != 0) return std::nullopt;
    return static_cast<double>(value) / scale;
  }

  GpuReading ReadOne(Device device, std::string uuid) const {
    constexpr double kPercent = 100.0, kMilli = 1000.0;
    GpuReading reading;
    reading.uuid = std::move(uuid);
    if (Utilization rates = {}; utilization_(device, &rates) == 0) reading.utilization = rates.gpu / kPercent;
    if (Memory memory = {}; memory_(device, &memory) == 0) {
      reading.memory_used = static_cast<double>(memory.used);
      reading.memory_total = static_cast<double>(memory.total);
    }
    reading.power_watts = Ask(power_, device, kMilli);
    reading.power_limit_watts = Ask(power_limit_, device, kMilli);
    reading.energy_joules = Ask(energy_, device, kMilli);
    return reading;
  }

  void* const library_;
  bool started_ = false;
  Call<> init_ = nullptr, shutdown_ = nullptr;
  Call<unsigned int*> count_ = nullptr;
  Call<unsigned int, Device*> device_ = nullptr;
  Call<Device, char*, unsigned int> uuid_ = nullptr;
  Call<Device, Utilization*> utilization_ = nullptr;
  Call<Device, Memory*> memory_ = nullptr;
  Call<Device, unsigned int*> power_ = nullptr, power_limit_ = nullptr;
  Call<Device, unsigned long long*> energy_ = nullptr;
};

}  // namespace

std::unique_ptr<GpuSensors> OpenGpuSensors(const char* library) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return nullptr;
  auto nvml = std::make_unique<Nvml>(opened);
  if (!nvml->Start()) return nullptr;
  return nvml;
}

}  // namespace swizzle
