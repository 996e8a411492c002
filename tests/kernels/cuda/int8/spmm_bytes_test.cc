// Sparse products of whole numbers on tensor cores, in every width and way, beside sums in 64 bits: they are exact.
// Skipped where there is no GPU that has them.
#include "kernels/cuda/int8/spmm_bytes.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/runtime/device_array.h"
#include "tests/bench/cuda/gather_forms.h"

namespace swizzle::cuda {
namespace {

constexpr int32_t kPoison = 0x5A5A5A5A;

// The device's multiprocessors; 0 where there is none from Ampere on.
int Multiprocessors() {
  int count = 0, major = 0, multiprocessors = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  return major >= 8 ? multiprocessors : 0;
}

struct Shape {
  int64_t rows, cols, columns;
  int vector_rows;
  double density;
};

// One product: operands drawn, in device memory, and its sums.
class Product {
 public:
  Product(const Shape& shape, int weight_bits, int column_bits, bool is_signed)
      : shape_(shape), column_bits_(column_bits), is_signed_(is_signed), random_(weight_bits * 17 + column_bits) {
    stride_ = RoundUp<int64_t>(shape.columns, 32);
    DrawWeights(weight_bits);
    DrawColumns();
    y_ = *DeviceArray<int32_t>::Upload(std::vector<int32_t>(shape.rows * stride_, kPoison));
  }

  ByteOperands operands() {
    return {.weight = weight_.get(),
            .x = {.bits = column_bits_,
                  .is_signed = is_signed_,
                  .low = low_.data(),
                  .high = column_bits_ == 16 ? high_.data() : nullptr,
                  .pitch = column_bits_ == 4 ? stride_ / 2 : stride_},
            .columns = shape_.columns,
            .stride = stride_,
            .y = y_.data()};
  }

  void Poison() { cudaMemset(y_.data(), kPoison & 255, y_.bytes()); }

  // Up to three of the sums that are wrong.
  std::string Mistakes() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
    std::vector<int32_t> actual(shape_.rows * stride_);
    EXPECT_EQ(cudaMemcpy(actual.data(), y_.data(), y_.bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    std::string mistakes;
    int count = 0;
    for (int64_t row = 0; row < shape_.rows && count < 3; ++row) {
      for (int64_t n = 0; n < shape_.columns && count < 3; ++n) {
        int64_t sum = 0;
        for (int64_t k = 0; k < shape_.cols; ++k) sum += int64_t{w_[row * shape_.cols + k]} * x_[k * stride_ + n];
        if (actual[row * stride_ + n] == sum) continue;
        mistakes += Concat("(", row, ", ", n, "): ", actual[row * stride_ + n], ", not ", sum, "; ");
        ++count;
      }
    }
    EXPECT_EQ(cudaMemset(y_.data(), 0x5A, y_.bytes()), cudaSuccess);
    return mistakes;
  }

 private:
  int Draw(int bits, bool is_signed = true) {
    return static_cast<int>(random_() % (1u << bits)) - (is_signed ? 1 << (bits - 1) : 0);
  }

  void DrawWeights(int bits) {
    DenseMatrix dense{shape_.rows, shape_.cols, std::vector<float>(shape_.rows * shape_.cols)};
    std::bernoulli_distribution kept(shape_.density);
    for (int64_t first = 0; first < shape_.rows; first += shape_.vector_rows) {
      for (int64_t col = 0; col < shape_.cols; ++col) {
        if (!kept(random_)) continue;
        for (int64_t row = first; row < std::min(shape_.rows, first + shape_.vector_rows); ++row) {
          dense.values[row * shape_.cols + col] = static_cast<float>(Draw(bits));
        }
      }
    }
    w_.assign(dense.values.begin(), dense.values.end());
    weight_ = *BytePanels::Make(SrBcrsMatrix::FromDense(dense, shape_.vector_rows), bits);
  }

  // Of 16 bits only so large that sums fit 32.
  void DrawColumns() {
    x_.resize(shape_.cols * stride_);
    for (int& value : x_) value = column_bits_ == 16 ? Draw(10) * 3 : Draw(column_bits_, is_signed_);
    std::vector<uint8_t> low(column_bits_ == 4 ? x_.size() / 2 : x_.size()), high(low.size());
    for (size_t i = 0; i < x_.size(); ++i) {
      if (column_bits_ == 4) {
        low[i / 2] |= static_cast<uint8_t>((x_[i] & 15) << 4 * (i % 2));
      } else {
        low[i] = static_cast<uint8_t>(x_[i] & 255);
        high[i] = static_cast<uint8_t>(x_[i] >> 8);
      }
    }
    low_ = *DeviceArray<uint8_t>::Upload(low);
    high_ = *DeviceArray<uint8_t>::Upload(high);
  }

  const Shape shape_;
  const int column_bits_;
  const bool is_signed_;
  int64_t stride_ = 0;
  std::mt19937 random_;
  std::vector<int> w_, x_;
  std::unique_ptr<BytePanels> weight_;
  DeviceArray<uint8_t> low_, high_;
  DeviceArray<int32_t> y_;
};

constexpr Shape kShapes[] = {{8, 32, 128, 8, 1.0},  {8, 32, 16, 8, 1.0},   {64, 300, 200, 8, 0.2}, {37, 65, 1, 4, 0.5},
                             {50, 129, 64, 2, 0.1}, {16, 40, 300, 8, 0.0}, {24, 700, 129, 8, 0.6}};

class SpmmBytesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    multiprocessors_ = Multiprocessors();
    if (multiprocessors_ == 0) GTEST_SKIP() << "no GPU with products of bytes";
  }
  int multiprocessors_ = 0;
};

TEST_F(SpmmBytesTest, BytesAreSummedInEveryWay) {
  for (const Shape& shape : kShapes) {
    for (const bool is_signed : {true, false}) {
      Product product(shape, 8, 8, is_signed);
      for (const ByteWay way : kByteWays) {
        product.Poison();
        QueueSums(product.operands(), way, multiprocessors_, nullptr);
        EXPECT_EQ(product.Mistakes(), "") << ByteWayName(way) << " of " << shape.rows << "x" << shape.cols << "x"
                                          << shape.columns << (is_signed ? "" : ", X unsigned");
      }
    }
  }
}

TEST_F(SpmmBytesTest, WiderNumbersAreSummedByDigits) {
  struct Widths {
    int weights, columns;
  };
  for (const auto& [weights, columns] : {Widths{16, 16}, {16, 8}, {16, 4}, {12, 4}, {8, 4}, {4, 4}}) {
    for (const ByteWay way : kByteWays) {
      EXPECT_EQ(HasSums(weights, columns, way),
                columns == 4 || columns == 8 || way == ByteWay::kGather || way == ByteWay::kGatherShared);
      if (!HasSums(weights, columns, way)) continue;
      for (const Shape& shape : kShapes) {
        Product product(shape, weights, columns, true);
        QueueSums(product.operands(), way, multiprocessors_, nullptr);
        EXPECT_EQ(product.Mistakes(), "") << weights << "-" << columns << " bits by " << ByteWayName(way) << " of "
                                          << shape.rows << "x" << shape.cols << "x" << shape.columns;
      }
    }
  }
  EXPECT_FALSE(HasSums(4, 8, ByteWay::kGather));
}

TEST_F(SpmmBytesTest, SumsAreTheSameInEveryForm) {
  struct Widths {
    int weights, columns;
  };
  for (const auto& [weights, columns] : {Widths{16, 8}, {8, 8}, {8, 4}, {4, 4}}) {
    for (const Shape& shape : kShapes) {
      Product product(shape, weights, columns, true);
      for (size_t form = 0; form < std::size(bench::kGatherForms); ++form) {
        product.Poison();
        bench::QueueSumsBy(form, product.operands(), nullptr);
        EXPECT_EQ(product.Mistakes(), "") << weights << "-" << columns << " bits, " << bench::kGatherForms[form].name
                                          << " of " << shape.rows << "x" << shape.cols << "x" << shape.columns;
      }
    }
  }
}

}  // namespace
}  // namespace swizzle::cuda
