// What tests of plans on a GPU have in common: both backends, and what one plan computes held against another's.
#ifndef SWIZZLE_TESTS_SUPPORT_GPU_BESIDE_CPU_H_
#define SWIZZLE_TESTS_SUPPORT_GPU_BESIDE_CPU_H_

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/support/plan_runs.h"

namespace swizzle::testing {

// Tests are skipped, with the reason, where there is no GPU.
class GpuBesideCpu : public ::testing::Test {
 protected:
  void SetUp() override {
    auto gpu = NewCudaBackend(0);
    if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
    gpu_ = *std::move(gpu);
  }

  // Of `batch` drawn images of the network. tolerance: as of ExpectClose.
  static void ExpectCloseImages(const Network& network, Runner& actual, Runner& expected, int64_t batch,
                                float tolerance) {
    const auto input = DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 7);
    ExpectClose(RunImages(actual, batch, input), RunImages(expected, batch, input), tolerance);
  }

  // Likewise of an encoder's sequences.
  static void ExpectCloseSequences(Runner& actual, Runner& expected, const Batch& batch, float tolerance) {
    const auto computed = RunSequences(actual, batch), right = RunSequences(expected, batch);
    for (size_t i = 0; i < right.size(); ++i) ExpectClose(computed[i], right[i], tolerance);
  }

  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
  std::unique_ptr<Backend> gpu_;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_GPU_BESIDE_CPU_H_
