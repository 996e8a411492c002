// What a GPU's stream says that work takes: what it adds to a plan, and nothing of what stands before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "kernels/cuda/cuda_backend.h"

namespace swizzle {
namespace {

class StreamTimeTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = size_t{64} << 20;

  void SetUp() override {
    auto gpu = NewCudaBackend(0);
    if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
    gpu_ = *std::move(gpu);
    stream_ = *gpu_->NewStream(0);
    from_ = *gpu_->Allocate(kBytes);
    to_ = *gpu_->Allocate(kBytes);
  }

  // The least of several times of so many copies.
  double Microseconds(int copies) {
    absl::Duration least = absl::InfiniteDuration();
    for (int run = 0; run < 10; ++run) {
      const auto time = stream_->Time(
          [&] {
            for (int i = 0; i < copies; ++i) stream_->Copy(to_->data(), from_->data(), kBytes);
          },
          {});
      EXPECT_TRUE(time.ok()) << time.status();
      if (time.ok()) least = std::min(least, *time);
    }
    return absl::ToDoubleMicroseconds(least);
  }

  std::unique_ptr<Backend> gpu_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Buffer> from_, to_;
};

TEST_F(StreamTimeTest, NothingTakesNoTime) {
  EXPECT_GT(Microseconds(0), 0.0);
  EXPECT_LT(Microseconds(0), 1.5);
}

TEST_F(StreamTimeTest, TwiceTheWorkTakesTwiceTheTime) {
  const double once = Microseconds(1), twice = Microseconds(2);
  EXPECT_GT(once, 10.0);
  EXPECT_NEAR(twice / once, 2.0, 0.3);
}

}  // namespace
}  // namespace swizzle
