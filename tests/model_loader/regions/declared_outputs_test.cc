#include "model_loader/regions/declared_outputs.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsError;

class DeclaredOutputsTest : public ::testing::Test {
 protected:
  // One node that reads x, and an output y that is declared as given.
  StatusOr<std::shared_ptr<const interpreter::Program>> TryDeclared(const char* op, Shape x,
                                                                    const GraphOutput& as = {}) {
    Graph graph;
    graph.opset = 17;
    graph.inputs = {graph.AddValue({"x", DType::kFloat32, std::move(x), std::nullopt})};
    const int y = graph.AddValue({"y", DType::kFloat32, std::nullopt, std::nullopt});
    graph.nodes.push_back({op, "", "node", graph.inputs, {y}, {}});
    graph.outputs.push_back({"y", y, as.dtype, as.shape});
    return WithDeclaredOutputs(*interpreter::Program::Make(std::move(graph)), *backend_, 1);
  }

  std::shared_ptr<const interpreter::Program> Declared(const char* op, Shape x, const GraphOutput& as = {}) {
    return *TryDeclared(op, std::move(x), as);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
};

TEST_F(DeclaredOutputsTest, AreAsRunsShowThem) {
  const interpreter::Port y = Declared("Neg", {-1, -1, 8})->outputs()[0];
  EXPECT_EQ(y.name, "y");
  EXPECT_EQ(y.dtype, DType::kFloat32);
  EXPECT_EQ(y.shape, (Shape{-1, -1, 8}));
  EXPECT_EQ(Declared("Neg", {2, 3})->outputs()[0].shape, (Shape{2, 3}));
}

TEST_F(DeclaredOutputsTest, AreOfTheTypeThatRunsMake) {
  EXPECT_EQ(Declared("Shape", {-1, 8})->outputs()[0].dtype, DType::kInt64);
  EXPECT_EQ(Declared("Shape", {-1, 8})->outputs()[0].shape, Shape{2});
}

TEST_F(DeclaredOutputsTest, AreFreeWhereShapesGoByElements) {
  const interpreter::Port y = Declared("NonZero", {2, 3})->outputs()[0];
  EXPECT_EQ(y.dtype, DType::kInt64);
  EXPECT_EQ(y.shape, (Shape{-1, -1}));
}

TEST_F(DeclaredOutputsTest, StayAsTheyWereDeclared) {
  const interpreter::Port y = Declared("Neg", {-1, 8}, {"", 0, DType::kFloat32, Shape{-1, -1}})->outputs()[0];
  EXPECT_EQ(y.shape, (Shape{-1, -1}));
}

TEST_F(DeclaredOutputsTest, AreOfTheOnlySizesThatRun) {
  EXPECT_EQ(Declared("Det", {-1, 8})->outputs()[0].shape, Shape{});
}

TEST_F(DeclaredOutputsTest, WantOperatorsThatTakeWhatTheyRead) {
  EXPECT_THAT(TryDeclared("Det", {2, 8}),
              IsError(StatusCode::kFailedPrecondition, "Det node 'node': input 0 is FP32[2,8]"));
}

}  // namespace
}  // namespace swizzle::regions
