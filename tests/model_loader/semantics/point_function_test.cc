#include "model_loader/semantics/point_function.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace swizzle {
namespace {

std::optional<KnownFunction> Of(double (*function)(double)) {
  Samples samples;
  for (double x : SamplePoints()) samples.push_back(function(x));
  return Recognised(samples);
}

FunctionKind KindOf(double (*function)(double)) { return std::get<NamedFunction>(Of(function).value()).function.kind; }

double Erf(double x) { return std::erf(x / static_cast<double>(1.41421354f)); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(PointFunctionTest, RecognisesFunctionsByTheirValues) {
  EXPECT_EQ(KindOf([](double x) { return x * 0.5 * (1 + Erf(x)); }), FunctionKind::kGelu);
  EXPECT_EQ(KindOf([](double x) {
              return 0.5 * x * (1 + std::tanh(static_cast<double>(0.7978846f) * x * (1 + 0.044715 * x * x)));
            }),
            FunctionKind::kGeluTanh);
  EXPECT_EQ(KindOf(Sigmoid), FunctionKind::kSigmoid);
  EXPECT_EQ(KindOf([](double x) { return std::tanh(x); }), FunctionKind::kTanh);
  EXPECT_EQ(KindOf([](double x) { return x * Sigmoid(x); }), FunctionKind::kSilu);
  const auto quick = std::get<NamedFunction>(Of([](double x) { return x * Sigmoid(1.702 * x); }).value());
  EXPECT_EQ(quick.function.kind, FunctionKind::kSilu);
  EXPECT_FLOAT_EQ(quick.scale, 1.702f);
}

TEST(PointFunctionTest, RecognisesLinesAndClamps) {
  const auto line = std::get<LinearFunction>(Of([](double x) { return 3 - x / 4; }).value());
  EXPECT_FLOAT_EQ(line.scale, -0.25f);
  EXPECT_FLOAT_EQ(line.shift, 3.0f);
  const auto relu = std::get<ClampFunction>(Of([](double x) { return std::max(x, 0.0); }).value());
  EXPECT_EQ(relu.low, 0.0f);
  EXPECT_EQ(relu.high, std::numeric_limits<float>::infinity());
  const auto relu6 = std::get<ClampFunction>(Of([](double x) { return std::clamp(x, 0.0, 6.0); }).value());
  EXPECT_EQ(relu6.low, 0.0f);
  EXPECT_EQ(relu6.high, 6.0f);
}

TEST(PointFunctionTest, OthersAreNothing) {
  EXPECT_FALSE(Of([](double x) { return x * x; }));
  EXPECT_FALSE(Of([](double x) { return std::sqrt(x); }));  // not a number everywhere
  EXPECT_FALSE(Of([](double x) { return x * 0.501 * (1 + Erf(x)); }));
  EXPECT_FALSE(Of([](double x) { return std::abs(x); }));
}

Node NodeOf(const std::string& op, size_t inputs) {
  Node node;
  node.op = op;
  node.name = "n";
  node.inputs.assign(inputs, 0);
  return node;
}

TEST(PointFunctionTest, KeepsToTypes) {
  const double arguments[] = {-7.0, 2.0};
  EXPECT_EQ((*PointFunctionOf(NodeOf("Div", 2), DType::kFloat32))(arguments), -3.5);
  EXPECT_EQ((*PointFunctionOf(NodeOf("Div", 2), DType::kInt64))(arguments), -3.0);
  Node cast = NodeOf("Cast", 1);
  cast.attributes["to"] = int64_t{9};
  EXPECT_EQ((*PointFunctionOf(cast, DType::kFloat32))(arguments), 1.0);
  EXPECT_EQ(PointFunctionType(cast, DType::kFloat32), DType::kBool);
  cast.attributes["to"] = int64_t{8};  // strings
  EXPECT_FALSE(PointFunctionOf(cast, DType::kFloat32));
  EXPECT_EQ(PointFunctionType(NodeOf("Equal", 2), DType::kInt64), DType::kBool);
  EXPECT_FALSE(PointFunctionOf(NodeOf("MatMul", 2), DType::kFloat32));
}

TEST(PointFunctionTest, MaxAndMinKeepWhatIsNotANumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* op : {"Max", "Min"}) {
    const PointFunction function = *PointFunctionOf(NodeOf(op, 2), DType::kFloat32);
    const double first[] = {nan, 1.0}, second[] = {1.0, nan};
    EXPECT_TRUE(std::isnan(function(first))) << op;
    EXPECT_TRUE(std::isnan(function(second))) << op;
  }
}

}  // namespace
}  // namespace swizzle
