// The packed layouts of the panel convolutions: every weight is there once, and padding adds nothing.
#include "kernels/cpu/conv/interleaved_csr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "kernels/cpu/conv/interleaved_dense.h"

namespace swizzle::cpu {
namespace {

using ::testing::ElementsAre;

CsrMatrix Draw(int64_t rows, int64_t cols, double density) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(0.01f, 1);
  std::bernoulli_distribution present(density);
  DenseMatrix dense{.rows = rows, .cols = cols, .values = std::vector<float>(rows * cols)};
  for (float& value : dense.values) value = present(random) ? uniform(random) : 0;
  return CsrMatrix::FromDense(dense);
}

// Undoes the packing; checks that a row meets each block once, save in groups that repeat their last row.
DenseMatrix Unpack(const InterleavedCsr& packed, int64_t rows) {
  DenseMatrix dense{.rows = rows, .cols = packed.cols(), .values = std::vector<float>(rows * packed.cols())};
  for (int64_t block = 0; block < packed.blocks(); ++block) {
    std::set<uint32_t> seen;
    for (int64_t slice = 0; slice < packed.slices(); ++slice) {
      for (const auto& segment : packed.segments(slice, block)) {
        for (uint32_t group = 0; group < segment.groups; ++group) {
          std::set<uint32_t> in_group;
          for (uint32_t r = 0; r < InterleavedCsr::kRows; ++r) {
            const uint32_t row = packed.rows()[(segment.first_group + group) * InterleavedCsr::kRows + r];
            if (!in_group.insert(row).second) continue;
            EXPECT_TRUE(seen.insert(row).second) << "row " << row << " twice in block " << block;
            for (uint32_t i = 0; i < segment.length; ++i) {
              const size_t entry =
                  (size_t{segment.first_entry} + group * segment.length + i) * InterleavedCsr::kRows + r;
              const int64_t column = packed.BlockBegin(block) + packed.offsets()[entry] / InterleavedCsr::kOffsetUnit;
              EXPECT_LT(column, packed.BlockBegin(block + 1));
              dense.values[row * packed.cols() + column] += packed.weights()[entry];
            }
          }
        }
      }
    }
    const bool starts_or_ends_sums = block == 0 || block + 1 == packed.blocks();
    if (starts_or_ends_sums) {
      EXPECT_EQ(seen.size(), static_cast<size_t>(rows));
    }
  }
  return dense;
}

TEST(InterleavedCsrTest, HoldsEveryWeight) {
  struct Size {
    int64_t rows, cols;
  };
  for (const Size size : {Size{1, 1}, {3, 17}, {4, 128}, {64, 129}, {65, 700}, {130, 1000}}) {
    for (const double density : {0.0, 0.1, 0.5, 1.0}) {
      for (const int threads : {1, 2, 5}) {
        const CsrMatrix matrix = Draw(size.rows, size.cols, density);
        const InterleavedCsr packed(matrix, {}, threads);
        EXPECT_EQ(Unpack(packed, size.rows).values, matrix.ToDense().values);
        EXPECT_EQ(packed.SliceBegin(0), 0);
        EXPECT_EQ(packed.SliceBegin(packed.slices()), size.rows);
      }
    }
  }
}

TEST(InterleavedCsrTest, WithoutEntriesItStillHasWhereRowsBegin) {
  const InterleavedCsr packed(Draw(40, 30, 0.0), {}, 1);
  EXPECT_NE(packed.weights(), nullptr);
  EXPECT_NE(packed.offsets(), nullptr);
}

TEST(InterleavedCsrTest, PaddingIsSmall) {
  const CsrMatrix matrix = Draw(512, 512, 0.1);
  const InterleavedCsr packed(matrix, {}, 1);
  size_t entries = 0;
  for (int64_t block = 0; block < packed.blocks(); ++block) {
    for (const auto& segment : packed.segments(0, block)) entries += segment.groups * segment.length;
  }
  EXPECT_LT(entries * InterleavedCsr::kRows, matrix.values.size() * 1.03);
  EXPECT_LT(packed.bytes(), matrix.values.size() * 6 * 1.15);
}

TEST(InterleavedCsrTest, SlicesAreBalanced) {
  // The first rows have nearly all the work.
  DenseMatrix dense = Draw(512, 256, 0.02).ToDense();
  std::fill_n(dense.values.begin(), 64 * 256, 1.0f);
  const InterleavedCsr packed(CsrMatrix::FromDense(dense), {}, 2);
  ASSERT_EQ(packed.slices(), 2);
  std::vector<size_t> work(2);
  for (int64_t slice = 0; slice < 2; ++slice) {
    for (int64_t block = 0; block < packed.blocks(); ++block) {
      for (const auto& segment : packed.segments(slice, block)) work[slice] += segment.groups * segment.length;
    }
  }
  EXPECT_LT(static_cast<double>(std::max(work[0], work[1])) / std::min(work[0], work[1]), 1.2);
}

TEST(InterleavedCsrTest, ThreadsAndLargeWeightsMakeSlices) {
  const auto slices = [](int64_t rows, double density, int threads, const CacheSizes& caches = {}) {
    return InterleavedCsr(Draw(rows, 512, density), {}, threads, caches).slices();
  };
  EXPECT_EQ(slices(512, 0.1, 1), 1);
  EXPECT_EQ(slices(512, 0.1, 3), 3);
  EXPECT_EQ(slices(20, 0.1, 8), 1);
  EXPECT_GT(slices(2048, 0.2, 1), 2);
  EXPECT_LT(slices(2048, 0.2, 1, {.second = 4 << 20}), slices(2048, 0.2, 1));
}

TEST(InterleavedCsrTest, BlocksGrowAsWeightsGetFewerAndCachesLarger) {
  const auto blocks = [](int64_t cols, double density, const CacheSizes& caches = {}) {
    return InterleavedCsr(Draw(64, cols, density), {}, 1, caches).blocks();
  };
  EXPECT_GT(blocks(1024, 0.5), blocks(1024, 0.05));
  EXPECT_EQ(blocks(1024, 0.01), 2);
  EXPECT_EQ(blocks(5, 1), 1);
  EXPECT_GT(blocks(1024, 0.5), blocks(1024, 0.5, {.first = 48 << 10}));
  EXPECT_EQ(blocks(1024, 0.5, {.first = 1 << 20}), 2) << "offsets have 16 bits";
}

TEST(InterleavedCsrTest, BlocksAreAsLongAsAskedWithinWhatOffsetsReach) {
  const CsrMatrix matrix = Draw(64, 1024, 0.1);
  const CacheSizes caches;
  const int64_t usual = InterleavedCsr::ChooseBlocks(matrix, caches);
  ASSERT_GT(usual, 4);
  const int64_t half = usual / 2;
  EXPECT_NEAR(InterleavedCsr::ChooseBlocks(matrix, caches, 0.5), 2 * usual, 1);
  EXPECT_NEAR(InterleavedCsr::ChooseBlocks(matrix, caches, 2.0), half, 1);
  EXPECT_EQ(InterleavedCsr::ChooseBlocks(matrix, caches, 100.0), 2);
  EXPECT_EQ(InterleavedCsr(matrix, {}, 1, 3, caches).blocks(), 3);
}

TEST(InterleavedCsrTest, BiasDefaultsToZero) {
  const CsrMatrix matrix = Draw(3, 4, 0.5);
  const InterleavedCsr without(matrix, {}, 1);
  EXPECT_THAT(std::vector<float>(without.bias(), without.bias() + 3), ElementsAre(0, 0, 0));
  const std::vector<float> bias = {1, 2, 3};
  const InterleavedCsr with(matrix, bias, 1);
  EXPECT_THAT(std::vector<float>(with.bias(), with.bias() + 3), ElementsAre(1, 2, 3));
}

TEST(InterleavedDenseTest, RepeatsTheLastRow) {
  DenseMatrix matrix{.rows = 8, .cols = 2, .values = {}};
  for (int i = 0; i < 16; ++i) matrix.values.push_back(static_cast<float>(i));
  const InterleavedDense packed(matrix, {});
  ASSERT_EQ(packed.groups(), 2);
  EXPECT_EQ(packed.GroupRows(0), 6);
  EXPECT_EQ(packed.GroupRows(1), 2);
  EXPECT_THAT(std::vector<float>(packed.weights(0, 0), packed.weights(0, 0) + 12),
              ElementsAre(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
  EXPECT_THAT(std::vector<float>(packed.weights(1, 1), packed.weights(1, 1) + 6), ElementsAre(13, 15, 15, 15, 15, 15));
}

TEST(InterleavedDenseTest, BlocksAreOfLikeSize) {
  EXPECT_EQ(InterleavedDense::BlockColumns(false, 2048), 2048);
  EXPECT_EQ(InterleavedDense::BlockColumns(false, 3072), 1536);
  EXPECT_EQ(InterleavedDense::BlockColumns(true, 576), 288);
  EXPECT_EQ(InterleavedDense::BlockColumns(true, 27), 27);
}

}  // namespace
}  // namespace swizzle::cpu
