// How products are cut for a device, by what the device says of itself. No GPU is needed.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "kernels/cuda/conv/csr/quad_csr.h"
#include "kernels/cuda/conv/csr/wgmma_plan.h"
#include "kernels/cuda/conv/dense/conv_dense_simt.h"
#include "kernels/cuda/conv/operands/fitted_device.h"

namespace swizzle::cuda {
namespace {

constexpr int64_t kSharedBytes = 227 * 1024;

SpmmDevice H200() { return {kFittedDevice, 64, kSharedBytes}; }

// Rows of 0 to 2 * mean entries in drawn columns.
CsrMatrix Draw(int64_t rows, int64_t cols, int64_t mean) {
  std::mt19937 random(static_cast<uint32_t>(rows + cols + mean));
  CsrMatrix matrix;
  matrix.rows = rows, matrix.cols = cols, matrix.row_offsets = {0};
  for (int64_t row = 0; row < rows; ++row) {
    std::set<uint32_t> columns;
    const auto length = static_cast<size_t>(std::min(cols, static_cast<int64_t>(row * 37 % (2 * mean + 1))));
    while (columns.size() < length) columns.insert(static_cast<uint32_t>(random() % cols));
    matrix.col_indices.insert(matrix.col_indices.end(), columns.begin(), columns.end());
    matrix.row_offsets.push_back(static_cast<uint32_t>(matrix.col_indices.size()));
  }
  matrix.values.assign(matrix.col_indices.size(), 1.0f);
  return matrix;
}

struct SpmmCase {
  int64_t rows, cols, mean, positions;
  DType dtype;
  const char *pieces, *tile128, *tile256;  // plans on an H200
};

constexpr SpmmCase kSpmmCases[] = {
    {512, 512, 51, 2048, DType::kFloat32, "pieces cut 0", "tile128 by 4", "tile256 by 4"},
    {2048, 512, 51, 196, DType::kFloat32, "pieces cut 1", "tile128 by 16", "tile256 by 32"},
    {512, 2304, 230, 196, DType::kFloat32, "pieces cut 3", "pieces cut 3", "pieces cut 3"},
    {64, 64, 6, 12544, DType::kFloat32, "pieces cut 1", "tile128 by 1", "tile256 by 1"},
    {1000, 768, 154, 1, DType::kFloat32, "pieces cut 6", "tile128 by 64", "tile256 by 64"},
    {256, 1024, 102, 784, DType::kFloat16, "pieces cut 3", "tile128 by 8", "pieces cut 3"},
    {768, 768, 77, 512, DType::kFloat16, "pieces cut 2", "tile128 by 16", "tile256 by 32"},
    {128, 147, 30, 3136, DType::kFloat32, "pieces cut 1", "tile128 by 2", "tile256 by 2"},
    {1024, 256, 52, 49, DType::kFloat32, "pieces cut 4", "tile128 by 64", "tile256 by 64"},
};

std::string PlanOf(SpmmWay way, const SpmmCase& c, const SpmmDevice& device) {
  return SpmmPlanText(MakeSpmmPlan(way, QuadCsr::Count(Draw(c.rows, c.cols, c.mean)), c.positions, device, c.dtype));
}

// Those that were fitted to its times.
TEST(SpmmPlanTest, AnH200HasThePlansThatWereFitted) {
  for (const SpmmCase& c : kSpmmCases) {
    SCOPED_TRACE(Concat(c.rows, "x", c.cols, " of ", c.mean, ", ", c.positions, " positions"));
    EXPECT_EQ(PlanOf(SpmmWay::kPieces, c, H200()), c.pieces);
    EXPECT_EQ(PlanOf(SpmmWay::kTile128, c, H200()), c.tile128);
    EXPECT_EQ(PlanOf(SpmmWay::kTile256, c, H200()), c.tile256);
  }
}

// Fewer multiprocessors are full with fewer CTAs; slower memory makes columns that are read again dear.
TEST(SpmmPlanTest, OtherDevicesHaveTheirOwn) {
  const SpmmCase& c = kSpmmCases[0];
  SpmmDevice few = H200();
  few.speed.multiprocessors = 33;
  few.speed.bus_bytes /= 4;  // as much memory to each
  EXPECT_EQ(PlanOf(SpmmWay::kTile128, c, few), "tile128 by 1");
  SpmmDevice slow = H200();
  slow.speed.memory_mhz /= 8;
  EXPECT_EQ(PlanOf(SpmmWay::kTile128, c, slow), "tile128 by 2");
  SpmmDevice small = H200();
  small.shared_bytes = 48 * 1024;
  EXPECT_EQ(PlanOf(SpmmWay::kTile128, c, small), "pieces cut 0");
}

// All of its times grow alike.
TEST(SpmmPlanTest, ASlowDeviceOfTheSameMakeHasTheSamePlans) {
  SpmmDevice slow = H200();
  slow.speed.clock_mhz /= 2;
  slow.speed.memory_mhz /= 2;
  for (const SpmmCase& c : kSpmmCases) EXPECT_EQ(PlanOf(SpmmWay::kPieces, c, slow), c.pieces);
}

constexpr std::array<int, 9> kClustersOfH200 = {0, 132, 66, 44, 32, 26, 22, 18, 16};

TEST(WgmmaPlanTest, AnH200HasThePlansThatWereFitted) {
  struct Case {
    int64_t rows, cols, positions;
    const char* plan;
  };
  constexpr Case kCases[] = {
      {64, 64, 49, "wgmma64 by 1"},      {512, 512, 196, "wgmma128 by 8"}, {768, 3072, 128, "wgmma128 by 8"},
      {2048, 512, 784, "wgmma128 by 1"}, {512, 4608, 49, "wgmma64 by 8"},  {256, 2304, 3136, "wgmma128 by 6"},
      {3072, 768, 512, "wgmma128 by 2"},
  };
  const WgmmaDevice h200 = {kFittedDevice, kClustersOfH200};
  for (const Case& c : kCases) {
    EXPECT_EQ(WgmmaPlanText(MakeWgmmaPlan(c.rows, c.cols, c.positions, h200)), c.plan) << c.rows << "x" << c.cols;
  }
}

TEST(WgmmaPlanTest, OtherDevicesHaveTheirOwn) {
  WgmmaDevice few = {kFittedDevice, {0, 66, 33, 22, 16, 13, 11, 9, 8}};
  few.speed.multiprocessors = 66;
  EXPECT_EQ(WgmmaPlanText(MakeWgmmaPlan(768, 3072, 128, few)), "wgmma128 by 5");
  // Where X comes so slowly that products wait for it, 64 rows take as long as 128.
  WgmmaDevice starved = {kFittedDevice, kClustersOfH200};
  starved.speed.memory_mhz /= 16;
  EXPECT_EQ(WgmmaPlanText(MakeWgmmaPlan(512, 768, 196, {kFittedDevice, kClustersOfH200})), "wgmma64 by 4");
  EXPECT_EQ(WgmmaPlanText(MakeWgmmaPlan(512, 768, 196, starved)), "wgmma128 by 6");
}

Problem Convolution(int64_t batch, int64_t channels, int64_t plane, int64_t out_channels) {
  Problem problem;
  problem.SetOp(Op::kConv);
  problem.input = {batch, channels, plane, plane};
  problem.output = {batch, out_channels, plane, plane};
  problem.window() = {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  return problem;
}

std::string CutText(const SimtCut& cut) {
  return Concat(cut.positions, "x", cut.channels, " in ", cut.splits, " of ", cut.steps_per_split);
}

TEST(SimtCutTest, FillsTheDevice) {
  const Problem many = Convolution(32, 64, 56, 128), few = Convolution(1, 512, 7, 512);
  EXPECT_EQ(CutText(CutForSimt(many, {132})), "128x128 in 1 of 72");
  EXPECT_EQ(CutText(CutForSimt(few, {132})), "64x64 in 36 of 16");
  EXPECT_EQ(CutText(CutForSimt(few, {16})), "64x64 in 12 of 48");
  const Problem middle = Convolution(1, 64, 56, 128);
  EXPECT_EQ(CutText(CutForSimt(middle, {132})), "64x64 in 4 of 18");
  EXPECT_EQ(CutText(CutForSimt(middle, {12})), "128x128 in 1 of 72");
}

// Which another device's plan may have made.
TEST(SimtCutTest, KeepsToTheRoomOfTheWorkspace) {
  const Problem few = Convolution(1, 512, 7, 512);
  EXPECT_EQ(CutForSimt(few, {132, 5}).splits, 5);
  EXPECT_EQ(CutForSimt(few, {132, 0}).splits, 1);
}

}  // namespace
}  // namespace swizzle::cuda
