// Products on tensor cores, of every type and width that the wrappers have, beside sums of whole numbers, which they
// make without rounding. Skipped where there is no GPU that has them.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cuda/runtime/device_array.h"
#include "tests/kernels/cuda/tensor_core/product_variants.h"

namespace swizzle::cuda {
namespace {

constexpr int kLeftWords = 8;  // of a row

// The compute capability, times ten; 0 where there is no GPU.
int Capability() {
  int count = 0, major = 0, minor = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  return 10 * major + minor;
}

int ElementsOfWord(Factor type) {
  if (type == Factor::kTf32) return 1;
  return type == Factor::kFloat16 || type == Factor::kBFloat16 ? 2 : 4;
}

uint32_t BitsOf(int value, Factor type) {
  switch (type) {
    case Factor::kFloat16:
      return HalfOfFloat(static_cast<float>(value));
    case Factor::kBFloat16:
      return Bfloat16OfFloat(static_cast<float>(value));
    case Factor::kTf32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    default:
      return static_cast<uint8_t>(value);
  }
}

// Small numbers, of both signs where the type has them.
std::vector<int> Draw(size_t count, Factor type, std::mt19937& random) {
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(random() % 9) - (type == Factor::kUint8 ? 0 : 4);
  return values;
}

std::vector<uint32_t> Packed(const std::vector<int>& values, Factor type) {
  const int each = ElementsOfWord(type);
  std::vector<uint32_t> words(values.size() / each);
  for (size_t i = 0; i < values.size(); ++i) words[i / each] |= BitsOf(values[i], type) << (32 / each * (i % each));
  return words;
}

// Which half of a sparse operand's places is there: of each four the first two, or the second and fourth; of TF32's
// pairs the first, or the second. Metadata has four bits for either.
struct Sparsity {
  uint32_t metadata, tf32_metadata;
  int kept[2], tf32_kept;
};
constexpr Sparsity kSparsities[] = {{0x44444444, 0x44444444, {0, 1}, 0}, {0xDDDDDDDD, 0xEEEEEEEE, {1, 3}, 1}};

// Where the i-th element that is there stands in its row.
int PlaceOf(const Sparsity& sparsity, Factor type, int i) {
  if (type == Factor::kTf32) return 2 * i + sparsity.tf32_kept;
  return i / 2 * 4 + sparsity.kept[i % 2];
}

class ProductTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Capability() < 80) GTEST_SKIP() << "no GPU with these products";
  }

  void Check(const ProductVariant& variant, const Sparsity& sparsity, std::mt19937& random) {
    if (variant.needs_hopper && Capability() != 90) return;
    const int left_depth = kLeftWords * ElementsOfWord(variant.left), depth = left_depth * (variant.sparse ? 2 : 1);
    const std::vector<int> left = Draw(variant.rows * left_depth, variant.left, random);
    const std::vector<int> right = Draw(variant.columns * depth, variant.right, random);
    const auto device_left = *DeviceArray<uint32_t>::Upload(Packed(left, variant.left));
    const auto device_right = *DeviceArray<uint32_t>::Upload(Packed(right, variant.right));
    auto device_sums = *DeviceArray<uint32_t>::Allocate(variant.rows * variant.columns);
    variant.queue(device_left.data(), device_right.data(),
                  variant.left == Factor::kTf32 ? sparsity.tf32_metadata : sparsity.metadata, device_sums.data());
    std::vector<uint32_t> sums(device_sums.size());
    ASSERT_EQ(cudaGetLastError(), cudaSuccess) << variant.name;
    ASSERT_EQ(cudaMemcpy(sums.data(), device_sums.data(), device_sums.bytes(), cudaMemcpyDeviceToHost), cudaSuccess)
        << variant.name;
    const bool whole = variant.left == Factor::kInt8 || variant.left == Factor::kUint8;
    for (int row = 0; row < variant.rows; ++row) {
      for (int column = 0; column < variant.columns; ++column) {
        int expected = 0;
        for (int i = 0; i < left_depth; ++i) {
          const int place = variant.sparse ? PlaceOf(sparsity, variant.left, i) : i;
          expected += 2 * left[row * left_depth + i] * right[column * depth + place];
        }
        const uint32_t bits = sums[row * variant.columns + column];
        const float sum = whole ? static_cast<float>(std::bit_cast<int32_t>(bits)) : std::bit_cast<float>(bits);
        ASSERT_EQ(sum, static_cast<float>(expected))
            << variant.name << ": row " << row << ", column " << column << ", metadata " << sparsity.metadata;
      }
    }
  }

  void CheckAll(const std::vector<ProductVariant>& variants) {
    std::mt19937 random(3);
    for (const ProductVariant& variant : variants) {
      for (const Sparsity& sparsity : kSparsities) {
        if (&sparsity != kSparsities && !variant.sparse) continue;
        Check(variant, sparsity, random);
        if (cudaPeekAtLastError() != cudaSuccess) return;
      }
    }
  }
};

TEST_F(ProductTest, Floats) { CheckAll(FloatVariants()); }
TEST_F(ProductTest, Integers) { CheckAll(IntegerVariants()); }

// Needs no GPU.
TEST(ProductVariants, AreOfEveryWidth) {
  std::multiset<std::pair<Factor, int>> widths;
  for (const auto& variants : {FloatVariants(), IntegerVariants()}) {
    for (const ProductVariant& variant : variants) {
      if (variant.left == variant.right && variant.needs_hopper) widths.insert({variant.left, variant.columns});
    }
  }
  for (int n = 8; n <= 256; n += 8) {
    for (const Factor type : {Factor::kFloat16, Factor::kBFloat16, Factor::kTf32}) {
      EXPECT_GE(widths.count({type, n}), 4u) << n;
    }
    if (n > 24 && n % 16 != 0) continue;
    EXPECT_EQ(widths.count({Factor::kInt8, n}), 4u) << n;
    EXPECT_EQ(widths.count({Factor::kUint8, n}), 4u) << n;
  }
}

}  // namespace
}  // namespace swizzle::cuda
