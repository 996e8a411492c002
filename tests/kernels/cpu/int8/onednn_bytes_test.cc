// What rows of bytes through oneDNN take, and that planes share weights. Results are kernel_rows_test.cc's and
// conv_bytes_test.cc's.
#include "kernels/cpu/int8/onednn_bytes.h"

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/runtime/targets.h"
#include "tests/kernels/layer_shapes.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kChannels = 32;

Problem PaddedConv(int64_t size) {
  Problem problem{{Op::kConv, Square(3, 1, 1), {}}, {1, kChannels, size, size}, {1, kChannels, size, size}};
  problem.inputs_as[0] = {DType::kUint8, 1.0f / 64, 3};
  problem.epilogue.requantise = Quantised{DType::kUint8, 1.0f / 8, 11};
  problem.from = problem.to = {Layout::kNhwc, DType::kUint8};
  return problem;
}

// Of each ten columns of a row, `kept` are ones.
Weight WeightWith(int64_t kept) {
  DenseMatrix matrix{kChannels, kChannels * 9, {}};
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) matrix.values.push_back(i % 10 < kept ? 1.0f : 0.0f);
  Weight weight{std::move(matrix), {}};
  weight.quantisation = Quantisation{DType::kInt8, {1.0f}, {}};
  return weight;
}

class OnednnBytesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if ((DetectFeatures() & kVnni) == 0) GTEST_SKIP() << "not on this processor";
  }
};

TEST_F(OnednnBytesTest, LeavesWeightsOfManyZerosToOthers) {
  EXPECT_TRUE(HoldsOnednnBytes(WeightWith(10), PaddedConv(8)));
  EXPECT_TRUE(HoldsOnednnBytes(WeightWith(5), PaddedConv(8)));
  EXPECT_FALSE(HoldsOnednnBytes(WeightWith(1), PaddedConv(8)));
}

TEST_F(OnednnBytesTest, TakesNoFunctionAndNoRealResidual) {
  Problem problem = PaddedConv(8);
  EXPECT_TRUE(AcceptsOnednnConvBytes(problem));
  problem.epilogue.residual = true;
  EXPECT_FALSE(AcceptsOnednnConvBytes(problem));
  problem.inputs_as[1] = {DType::kUint8, 1.0f / 32, 7};
  EXPECT_TRUE(AcceptsOnednnConvBytes(problem));
  problem.epilogue.function = Function{FunctionKind::kSilu};
  EXPECT_FALSE(AcceptsOnednnConvBytes(problem));
}

TEST_F(OnednnBytesTest, PlanesShareWeights) {
  auto prepared = PrepareOnednnBytes(WeightWith(10), PaddedConv(8));
  ASSERT_TRUE(prepared.ok());
  const SharedWeight form = *std::move(prepared);
  const auto other = OnednnBytesForPlane(form, PaddedConv(20));
  ASSERT_TRUE(other.ok());
  ASSERT_NE(*other, nullptr);
  EXPECT_GE(form->bytes() - (*other)->bytes(), size_t{kChannels * kChannels * 9});
}

TEST_F(OnednnBytesTest, AWorkspaceThatCannotBeSaidIsMoreThanThereIs) {
  Problem problem = PaddedConv(8);
  problem.output.width = 100;
  EXPECT_FALSE(HoldsOnednnBytes(WeightWith(10), problem));
  EXPECT_GT(OnednnBytesWorkspace(problem), size_t{1} << 50);
}

}  // namespace
}  // namespace swizzle::cpu
