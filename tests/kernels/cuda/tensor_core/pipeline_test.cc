// A producer and a consumer that go round a ring of stages several times. Skipped where there is no Hopper GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cuda/runtime/device_array.h"
#include "tests/kernels/cuda/tensor_core/pipeline_product.h"

namespace swizzle::cuda {
namespace {

bool HasHopper() {
  int count = 0, major = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return false;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  return major == 9;
}

std::vector<int> Draw(size_t count, std::mt19937& random) {
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(random() % 9) - 4;
  return values;
}

std::vector<uint16_t> Halves(const std::vector<int>& values) {
  std::vector<uint16_t> halves;
  for (int value : values) halves.push_back(HalfOfFloat(static_cast<float>(value)));
  return halves;
}

// [64][depth] in blocks of 64 by 64, as QueuePipelineProduct wants them.
std::vector<int> InBlocks(const std::vector<int>& left, int depth) {
  std::vector<int> blocks(left.size());
  for (int row = 0; row < kProductRows; ++row) {
    for (int k = 0; k < depth; ++k) {
      const int in_block = k % kStageDepth, piece = in_block / 8 ^ row % 8;
      blocks[(k / kStageDepth * kProductRows + row) * kStageDepth + piece * 8 + k % 8] = left[row * depth + k];
    }
  }
  return blocks;
}

TEST(PipelineTest, MultipliesGatheredRows) {
  if (!HasHopper()) GTEST_SKIP() << "no GPU with warpgroups' products";
  constexpr int kRowsOfX = 100;
  std::mt19937 random(5);
  for (const int stages : {1, 2, 3, 4, 11}) {
    const int depth = stages * kStageDepth;
    const std::vector<int> left = Draw(kProductRows * depth, random), x = Draw(kRowsOfX * kProductColumns, random);
    std::vector<uint32_t> taken(depth);
    for (uint32_t& row : taken) row = random() % kRowsOfX;
    const auto device_left = *DeviceArray<uint16_t>::Upload(Halves(InBlocks(left, depth)));
    const auto device_x = *DeviceArray<uint16_t>::Upload(Halves(x));
    const auto device_taken = *DeviceArray<uint32_t>::Upload(taken);
    auto device_sums = *DeviceArray<float>::Allocate(kProductRows * kProductColumns);
    QueuePipelineProduct(device_left.data(), device_x.data(), device_taken.data(), stages, device_sums.data());
    std::vector<float> sums(device_sums.size());
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(sums.data(), device_sums.data(), device_sums.bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    for (int row = 0; row < kProductRows; ++row) {
      for (int column = 0; column < kProductColumns; ++column) {
        int expected = 0;
        for (int k = 0; k < depth; ++k) expected += left[row * depth + k] * x[taken[k] * kProductColumns + column];
        ASSERT_EQ(sums[row * kProductColumns + column], static_cast<float>(expected))
            << stages << " stages, row " << row << ", column " << column;
      }
    }
  }
}

}  // namespace
}  // namespace swizzle::cuda
