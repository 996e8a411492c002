// A library that answers as NVIDIA's does: of two GPUs, the second of which tells little.
#include <cstddef>
#include <cstdio>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3;
int gpus[2];

bool IsFirst(const void* device) { return device == &gpus[0]; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }
int nvmlShutdown() { return kSuccess; }

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = &gpus[index];
  return kSuccess;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int length) {
  std::snprintf(uuid, length, "GPU-%d", IsFirst(device) ? 1 : 2);
  return kSuccess;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned int* percent) {
  percent[0] = 75;
  percent[1] = 10;
  return IsFirst(device) ? kSuccess : kNotSupported;
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* bytes) {
  bytes[0] = 1000;
  bytes[1] = 600;
  bytes[2] = 400;
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  *milliwatts = 250500;
  return IsFirst(device) ? kSuccess : kNotSupported;
}

int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned int* milliwatts) {
  *milliwatts = 700000;
  return IsFirst(device) ? kSuccess : kNotSupported;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  *millijoules = 12345000;
  return IsFirst(device) ? kSuccess : kNotSupported;
}

}  // extern "C"
