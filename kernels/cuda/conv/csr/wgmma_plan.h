// How products of conv_csr_wgmma.h are laid over a device, by what the device and the weight are. Values and pure
// functions, on the host; no GPU is needed.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_WGMMA_PLAN_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_WGMMA_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend/device_speed.h"

namespace swizzle::cuda {

struct WgmmaDevice {
  DeviceSpeed speed;
  std::array<int, 9> clusters = {};  // that are there at once, by their CTAs; those lie in one of the chip's parts
};

struct WgmmaPlan {
  int rows = 64;    // of a CTA: 64 or 128
  int sharers = 1;  // CTAs of a cluster, which share K: up to 8
};

// The plan for a weight of so many rows and columns that an estimate finds fastest, Y having `positions` columns.
WgmmaPlan MakeWgmmaPlan(int64_t rows, int64_t cols, int64_t positions, const WgmmaDevice& device);
std::vector<WgmmaPlan> AllWgmmaPlans(int64_t cols);
std::string WgmmaPlanText(const WgmmaPlan& plan);  // "wgmma128 by 4"

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_WGMMA_PLAN_H_
