#include "kernels/cuda/runtime/device_facts.h"

#include <cuda_runtime.h>

#include <vector>

namespace swizzle::cuda {
namespace {

DeviceFacts Ask(int ordinal) {
  const auto attribute = [=](cudaDeviceAttr which, int otherwise) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess && value > 0 ? value : otherwise;
  };
  constexpr int kTuring = 7, kOtherClock = 1'000'000, kOtherMemoryClock = 5'000'000, kOtherBusBits = 128;
  DeviceFacts facts;
  facts.speed.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, facts.speed.multiprocessors);
  facts.speed.lanes = attribute(cudaDevAttrComputeCapabilityMajor, kTuring) == kTuring ? 64 : 128;
  facts.speed.clock_mhz = attribute(cudaDevAttrClockRate, kOtherClock) / 1e3;
  facts.speed.memory_mhz = attribute(cudaDevAttrMemoryClockRate, kOtherMemoryClock) / 1e3;
  facts.speed.bus_bytes = attribute(cudaDevAttrGlobalMemoryBusWidth, kOtherBusBits) / 8;
  facts.warps = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, facts.warps * 32) / 32;
  return facts;
}

std::vector<DeviceFacts> AskAll() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  std::vector<DeviceFacts> all;
  for (int ordinal = 0; ordinal < count; ++ordinal) all.push_back(Ask(ordinal));
  return all;
}

}  // namespace

const DeviceFacts& FactsOf(int ordinal) {
  static const std::vector<DeviceFacts> all = AskAll();
  static const DeviceFacts none;
  return ordinal >= 0 && ordinal < static_cast<int>(all.size()) ? all[ordinal] : none;
}

const DeviceFacts& CurrentDeviceFacts() {
  int ordinal = 0;
  cudaGetDevice(&ordinal);
  return FactsOf(ordinal);
}

}  // namespace swizzle::cuda
