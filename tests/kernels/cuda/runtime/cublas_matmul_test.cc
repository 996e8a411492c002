// Which algorithm a product of cuBLASLt's takes: the first until one was chosen where kernels are timed, each of which
// computes the product. Skipped where there is no GPU.
#include "kernels/cuda/runtime/cublas_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/base/half_bits.h"
#include "kernels/cuda/runtime/device_array.h"
#include "tests/support/status_matchers.h"

namespace swizzle::cuda {
namespace {

using ::swizzle::testing::IsOk;

struct Case {
  DType dtype;
  bool tf32, keeps_sums, adds;
  double error;
};
constexpr Case kCases[] = {{DType::kFloat16, false, false, true, 4e-3},
                           {DType::kBFloat16, false, false, false, 3e-2},
                           {DType::kFloat16, false, true, false, 4e-3},
                           {DType::kFloat32, true, false, true, 4e-3},
                           {DType::kFloat32, false, false, false, 1e-5}};

// relu(W^T X + C + bias), all of drawn numbers, as layers have it that lie by positions. On the current device.
class Drawn {
 public:
  explicit Drawn(const Case& drawn) : case_(drawn) {
    std::mt19937 random(7);
    std::normal_distribution<float> value;
    const auto draw = [&](int64_t count, std::vector<float>& values) {
      values.resize(count);
      for (float& each : values) each = value(random) / 16;
      return *DeviceArray<std::byte>::Upload(Stored(values));
    };
    w_ = draw(kRows * kDepth, w_values_);
    x_ = draw(kDepth * kColumns, x_values_);
    c_ = draw(kRows * kColumns, c_values_);
    d_ = *DeviceArray<std::byte>::Upload(std::vector<std::byte>(kRows * kColumns * sizeof(float), std::byte{0xff}));
  }

  Product product() {
    Product product;
    product.dtype = case_.dtype;
    product.tf32 = case_.tf32;
    product.keeps_sums = case_.keeps_sums;
    product.m = kRows, product.n = kColumns, product.k = kDepth;
    product.a = {w_.data(), kDepth, 0, /*is_weight=*/true};
    product.transpose_a = true;
    product.b = {x_.data(), kDepth};
    product.c = case_.adds ? c_.data() : nullptr;
    product.relu = !case_.keeps_sums;
    product.d = d_.data();
    product.ld_d = kRows;
    return product;
  }

  // The largest difference, over the largest sum; when what was queued is done.
  double Error() const {
    std::vector<std::byte> bytes(d_.size());
    EXPECT_EQ(cudaMemcpy(bytes.data(), d_.data(), bytes.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    double error = 0, largest = 0;
    for (int64_t column = 0; column < kColumns; ++column) {
      for (int64_t row = 0; row < kRows; ++row) {
        double sum = case_.adds ? c_values_[column * kRows + row] : 0.0f;
        for (int64_t k = 0; k < kDepth; ++k) {
          sum += double{w_values_[row * kDepth + k]} * x_values_[column * kDepth + k];
        }
        if (!case_.keeps_sums) sum = std::max(sum, 0.0);
        const double difference = std::abs(sum - At(bytes, column * kRows + row));
        largest = std::max(largest, std::abs(sum));
        error = difference <= error ? error : difference;  // NaN wins
      }
    }
    return error / largest;
  }

 private:
  static constexpr int64_t kRows = 192, kDepth = 1024, kColumns = 136;  // few tiles of a long depth: splits are named

  std::vector<std::byte> Stored(const std::vector<float>& values) const {
    std::vector<std::byte> bytes(values.size() * ElementBytes(case_.dtype));
    if (case_.dtype == DType::kFloat32) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    } else {
      StoreHalves(values, case_.dtype, bytes.data());
    }
    return bytes;
  }
  double At(const std::vector<std::byte>& bytes, int64_t i) const {
    float single = 0;
    uint16_t half = 0;
    if (case_.keeps_sums || case_.dtype == DType::kFloat32) {
      std::memcpy(&single, bytes.data() + i * sizeof(single), sizeof(single));
      return single;
    }
    std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
    return case_.dtype == DType::kFloat16 ? FloatOfHalf(half) : FloatOfBfloat16(half);
  }

  const Case case_;
  std::vector<float> w_values_, x_values_, c_values_;
  DeviceArray<std::byte> w_, x_, c_, d_;
};

class CublasMatmulTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "there is no GPU";
  }

  // A device that has chosen nothing, for its streams.
  static std::unique_ptr<Device> NewDevice() {
    auto device = std::make_unique<Device>();
    int l2_bytes = 0;
    EXPECT_EQ(cudaDeviceGetAttribute(&device->multiprocessors, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), cudaSuccess);
    device->l2_bytes = static_cast<size_t>(l2_bytes);
    return device;
  }

  static double ErrorOfARun(Device& device, const Case& each) {
    const auto stream = *CudaStream::Make(device);
    Drawn drawn(each);
    stream->Run([&] { stream->Report(QueueProduct(drawn.product(), *stream)); });
    EXPECT_THAT(stream->Synchronize(), IsOk());
    return drawn.Error();
  }
  static double ErrorOfTiming(Device& device, const Case& each) {
    const auto stream = *CudaStream::Make(device);
    Drawn drawn(each);
    EXPECT_THAT(stream->Time([&] { stream->Report(QueueProduct(drawn.product(), *stream)); }, {}).status(), IsOk());
    return drawn.Error();
  }
};

TEST_F(CublasMatmulTest, ChoosesOnceWhereItIsTimed) {
  for (const Case& each : kCases) {
    const auto device = NewDevice();
    EXPECT_LT(ErrorOfARun(*device, each), each.error);
    EXPECT_TRUE(device->algorithms.All().empty()) << "nothing was timed";
    EXPECT_LT(ErrorOfTiming(*device, each), each.error);
    const auto chosen = device->algorithms.All();
    ASSERT_EQ(chosen.size(), 1u);
    EXPECT_GT(chosen.begin()->second.microseconds, 0.0);
    EXPECT_LT(ErrorOfTiming(*device, each), each.error);
    EXPECT_EQ(device->algorithms.All(), chosen);
  }
}

TEST_F(CublasMatmulTest, EachAlgorithmComputesTheProduct) {
  for (const Case& each : kCases) {
    const auto first = NewDevice();
    ErrorOfTiming(*first, each);
    ASSERT_FALSE(first->algorithms.All().empty());
    const std::string product = first->algorithms.All().begin()->first;
    for (int algorithm = 0; algorithm < 12; ++algorithm) {  // of places past the end of the list, the first
      const auto device = NewDevice();
      device->algorithms.Add(product, {algorithm, 1.0});
      EXPECT_LT(ErrorOfARun(*device, each), each.error) << product << ", algorithm " << algorithm;
    }
  }
}

}  // namespace
}  // namespace swizzle::cuda
