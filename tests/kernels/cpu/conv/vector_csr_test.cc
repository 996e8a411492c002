// Which weights are packed as vectors of rows, and that every weight is there once.
#include "kernels/cpu/conv/vector_csr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace swizzle::cpu {
namespace {

using ::testing::ElementsAre;

// Groups of `vector` rows are nonzero in the same columns; the rows are then shuffled if so wanted.
CsrMatrix Draw(int64_t rows, int64_t cols, double density, int64_t vector, bool shuffled = false) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0.01f, 1);
  std::bernoulli_distribution present(density);
  std::vector<int64_t> place(rows);
  std::iota(place.begin(), place.end(), 0);
  if (shuffled) std::ranges::shuffle(place, random);
  DenseMatrix dense{.rows = rows, .cols = cols, .values = std::vector<float>(rows * cols)};
  for (int64_t first = 0; first < rows; first += vector) {
    for (int64_t k = 0; k < cols; ++k) {
      if (!present(random)) continue;
      for (int64_t r = first; r < std::min(first + vector, rows); ++r)
        dense.values[place[r] * cols + k] = uniform(random);
    }
  }
  return CsrMatrix::FromDense(dense);
}

Problem Over(const CsrMatrix& matrix, int threads = 1, const Window& window = {}) {
  const int64_t channels = matrix.cols / window.kernel_h / window.kernel_w;
  return {{Op::kConv, window}, {1, channels, 8, 8}, {1, matrix.rows, 8, 8}, threads};
}

DenseMatrix Unpack(const VectorCsr& packed, int64_t rows) {
  DenseMatrix dense{.rows = rows, .cols = packed.cols(), .values = std::vector<float>(rows * packed.cols())};
  std::set<uint32_t> seen;
  for (int64_t tile = 0; tile < packed.SliceBegin(packed.slices()); ++tile) {
    for (int r = 0; r < VectorCsr::kRows; ++r) {
      const uint32_t row = packed.rows(tile)[r];
      if (!seen.insert(row).second) continue;
      for (int64_t block = 0; block < packed.blocks(); ++block) {
        for (int64_t i = packed.EntryBegin(tile, block); i < packed.EntryBegin(tile, block + 1); ++i) {
          const int64_t column = packed.BlockBegin(block) + packed.offsets()[i] / VectorCsr::kOffsetUnit;
          EXPECT_LT(column, packed.BlockBegin(block + 1));
          dense.values[row * packed.cols() + column] += packed.weights()[i * VectorCsr::kRows + r];
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(rows));
  return dense;
}

TEST(VectorCsrTest, HoldsEveryWeight) {
  constexpr Window kSquare = {.kernel_h = 3, .kernel_w = 3};
  for (const bool shuffled : {false, true}) {
    for (const int64_t rows : {7, 64, 102}) {
      for (const Window& window : {Window{}, kSquare}) {
        const CsrMatrix matrix = Draw(rows, 2 * 1170, 0.1, 4, shuffled);
        EXPECT_TRUE(VectorCsr::IsFull(matrix)) << rows << " rows, shuffled " << shuffled;
        const VectorCsr packed(matrix, {}, Over(matrix, 2, window));
        EXPECT_EQ(packed.blocks(), window.IsPointwise() ? 2 : 3);
        EXPECT_EQ(Unpack(packed, rows).values, matrix.ToDense().values);
      }
    }
  }
}

TEST(VectorCsrTest, IsFullWhereRowsShareColumnsOnly) {
  EXPECT_TRUE(VectorCsr::IsFull(Draw(64, 256, 0.1, 4)));
  EXPECT_TRUE(VectorCsr::IsFull(Draw(64, 256, 0.1, 8)));
  EXPECT_TRUE(VectorCsr::IsFull(Draw(64, 256, 0.1, 8, true)));
  EXPECT_TRUE(VectorCsr::IsFull(Draw(64, 256, 0.95, 1))) << "hardly any zeros";
  EXPECT_FALSE(VectorCsr::IsFull(Draw(64, 256, 0.1, 1)));
  EXPECT_FALSE(VectorCsr::IsFull(Draw(64, 256, 0.1, 2)));
  EXPECT_FALSE(VectorCsr::IsFull(Draw(64, 256, 0, 1))) << "nothing to share";
  EXPECT_FALSE(VectorCsr::IsFull(Draw(3, 256, 1, 1))) << "no whole tile";
}

// The header's worked example, each row twice.
TEST(VectorCsrTest, BringsRowsOfAVectorTogether) {
  DenseMatrix dense{.rows = 8, .cols = 4, .values = {}};
  for (int i = 0; i < 2; ++i) {
    for (float value : {1, 0, 2, 0, 0, 0, 0, 3, 4, 0, 5, 0, 0, 0, 0, 6}) dense.values.push_back(value);
  }
  const CsrMatrix matrix = CsrMatrix::FromDense(dense);
  const VectorCsr packed(matrix, std::vector<float>(8, 1.0f), Over(matrix));
  EXPECT_THAT(std::vector<uint32_t>(packed.rows(0), packed.rows(0) + 8), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_EQ(packed.EntryBegin(1, 0), 2);
  EXPECT_EQ(packed.EntryBegin(2, 0), 3);
  EXPECT_THAT(std::vector<float>(packed.weights(), packed.weights() + 12),
              ElementsAre(1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6));
  EXPECT_EQ(packed.bias()[7], 1);
}

TEST(VectorCsrTest, ThreadsAndLargeWeightsMakeSlices) {
  const CsrMatrix matrix = Draw(256, 512, 0.2, 4);
  const auto slices = [&](int threads, const CacheSizes& caches) {
    return VectorCsr(matrix, {}, Over(matrix, threads), caches).slices();
  };
  EXPECT_EQ(slices(1, {}), 1);
  EXPECT_EQ(slices(2, {}), 2);
  EXPECT_EQ(slices(1, {.second = 128 << 10}), 4) << "about 100 KiB of weights, 32 KiB a slice";
}

}  // namespace
}  // namespace swizzle::cpu
