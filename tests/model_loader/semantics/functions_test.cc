// Activation functions: alone, written out in several operators, and as gates.
#include "model_loader/semantics/functions.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/support/after_pass.h"

namespace swizzle {
namespace {

using testing::After;
using testing::OnnxBuilder;

// x and the constants that exporters write functions with.
OnnxBuilder Start() {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4}).Floats("three", {}, {3}).Floats("zero", {}, {0}).Floats("six", {}, {6});
  builder.Floats("sixth", {}, {1.0f / 6}).Floats("quarter", {}, {0.25f});
  return builder;
}

// clamp(x + 3, 0, 6), called r
OnnxBuilder Ramp() {
  OnnxBuilder builder = Start();
  builder.Node("Add", {"x", "three"}, {"a"}).Node("Clip", {"a", "zero", "six"}, {"r"});
  return builder;
}

std::string OneFunction(const char* function, const char* alpha, const char* beta) {
  return std::string("\ninput %x: FP32[N,2,4,4]\n%y = swizzle.Function(%x) {alpha=") + alpha + ",beta=" + beta +
         ",function=\"" + function + "\"} \"y_node\" -> FP32[N,2,4,4]\noutput \"y\" = %y\n";
}

const std::string kHardSwish = OneFunction("HardSwish", "0.166667", "0.5");

TEST(RecogniseFunctionsTest, OnnxFunctionsKeepTheirNumbers) {
  EXPECT_EQ(After("recognise_functions", 0, Start().Node("HardSwish", {"x"}, {"y"}).Output("y")), kHardSwish);
  EXPECT_EQ(After("recognise_functions", 0, Start().Node("Sigmoid", {"x"}, {"y"}).Output("y")),
            OneFunction("Sigmoid", "0", "0"));
  EXPECT_EQ(After("recognise_functions", 0, Start().Node("HardSigmoid", {"x"}, {"y"}).Output("y")),
            OneFunction("HardSigmoid", "0.2", "0.5"));
  EXPECT_EQ(After("recognise_functions", 0,
                  Start().Node("HardSigmoid", {"x"}, {"y"}, {{"alpha", 0.25f}, {"beta", 0.75f}}).Output("y")),
            OneFunction("HardSigmoid", "0.25", "0.75"));
  EXPECT_EQ(After("recognise_functions", 0, Start().Node("LeakyRelu", {"x"}, {"y"}).Output("y")),
            OneFunction("LeakyRelu", "0.01", "0"));
}

TEST(RecogniseFunctionsTest, GatesInBothOrders) {
  for (const bool swapped : {false, true}) {
    const auto gated = [&](OnnxBuilder builder) {
      return After("recognise_functions", 1,
                   builder.Node("Mul", {swapped ? "g" : "x", swapped ? "x" : "g"}, {"y"}).Output("y"));
    };
    EXPECT_EQ(gated(Start().Node("Sigmoid", {"x"}, {"g"})), OneFunction("Silu", "0", "0"));
    EXPECT_EQ(gated(Start().Node("HardSigmoid", {"x"}, {"g"}, {{"alpha", 0.25f}})),
              OneFunction("HardSwish", "0.25", "0.5"));
  }
}

TEST(RecogniseFunctionsTest, WrittenOutHardSwish) {
  for (const bool swapped : {false, true}) {
    const auto product = [&](const char* a, const char* b) {
      return std::vector<std::string>{swapped ? b : a, swapped ? a : b};
    };
    EXPECT_EQ(After("recognise_functions", 1,
                    Ramp().Node("Mul", product("x", "r"), {"m"}).Node("Div", {"m", "six"}, {"y"}).Output("y")),
              kHardSwish);
    EXPECT_EQ(After("recognise_functions", 1,
                    Ramp().Node("Mul", {"x", "sixth"}, {"m"}).Node("Mul", product("m", "r"), {"y"}).Output("y")),
              kHardSwish);
    EXPECT_EQ(After("recognise_functions", 2,
                    Ramp().Node("Mul", {"r", "sixth"}, {"m"}).Node("Mul", product("m", "x"), {"y"}).Output("y")),
              kHardSwish);
  }
  EXPECT_EQ(After("recognise_functions", 1, Ramp().Node("Div", {"r", "six"}, {"y"}).Output("y")),
            OneFunction("HardSigmoid", "0.166667", "0.5"));
}

TEST(RecogniseFunctionsTest, LeavesWhatIsAnother) {
  const auto text = [](OnnxBuilder builder) { return After("recognise_functions", 0, builder.Output("y")); };
  EXPECT_EQ(text(Ramp().Node("Mul", {"r", "quarter"}, {"y"})).find("Function"), std::string::npos) << "ends at 1.5";
  EXPECT_EQ(text(Ramp().Node("Mul", {"x", "r"}, {"y"})).find("Function"), std::string::npos) << "ends at 6";
  EXPECT_EQ(text(Ramp().Node("Mul", {"a", "r"}, {"m"}).Node("Div", {"m", "six"}, {"y"})).find("Function"),
            std::string::npos)
      << "the ramp of something else";
  EXPECT_NE(text(Start().Node("Sigmoid", {"x"}, {"g"}).Node("Relu", {"x"}, {"s"}).Node("Mul", {"s", "g"}, {"y"}))
                .find("swizzle.Multiply(%s,%g)"),
            std::string::npos)
      << "the gate of something else";
}

TEST(CanonicaliseTest, ProductsOfActivations) {
  const auto product = [](const char* a, const char* b) {
    OnnxBuilder builder = Start();
    builder.Node("GlobalAveragePool", {"x"}, {"p"}).Node("Relu", {"x"}, {"s"}).Node("Mul", {a, b}, {"y"}).Output("y");
    return After("canonicalise", 0, builder);
  };
  EXPECT_NE(product("x", "s").find("%y = swizzle.Multiply(%x,%s) \"y_node\" -> FP32[N,2,4,4]"), std::string::npos);
  EXPECT_NE(product("x", "p").find("%y = swizzle.Scale(%x,%p) \"y_node\" -> FP32[N,2,4,4]"), std::string::npos);
  EXPECT_NE(product("p", "x").find("%y = swizzle.Scale(%x,%p) \"y_node\" -> FP32[N,2,4,4]"), std::string::npos);
  EXPECT_NE(product("p", "p").find("%y = swizzle.Multiply(%p,%p) \"y_node\" -> FP32[N,2,1,1]"), std::string::npos);
}

TEST(FuseActivationTest, ClampsFunctionsAndProducts) {
  OnnxBuilder builder = Start();
  builder.Node("LeakyRelu", {"x"}, {"l"}).Node("Relu", {"l"}, {"a"});
  builder.Node("Mul", {"a", "x"}, {"m"}).Node("Clip", {"m", "", "six"}, {"y"}).Output("y");
  const std::string text = After("fuse_activation", 2, builder);
  EXPECT_NE(text.find("function=\"LeakyRelu\",high=inf,low=0}"), std::string::npos) << text;
  EXPECT_NE(text.find("%y = swizzle.Multiply(%a,%x) {high=6,low=-inf}"), std::string::npos) << text;
}

// Below opset 7 the second operand's place is an attribute; below 11 bounds and pads are.
TEST(CanonicaliseTest, OldSpellings) {
  using Ints = std::vector<int64_t>;
  OnnxBuilder builder(6);
  builder.Input("x", {-1, 2, 4, 4}).Floats("k", {2}, {3, 5});
  builder.Node("Mul", {"x", "k"}, {"m"}, {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}});
  builder.Node("Clip", {"m"}, {"c"}, {{"min", -1.0f}, {"max", 6.0f}});
  builder.Node("Pad", {"c"}, {"y"}, {{"pads", Ints{0, 0, 1, 2, 0, 0, 3, 4}}, {"value", 0.5f}}).Output("y");
  EXPECT_EQ(After("canonicalise", 0, builder), R"(
input %x: FP32[N,2,4,4]
constant %m_node.scale: FP32[2] = {3,5}
constant %m_node.shift: FP32[2] = {0,0}
%m = swizzle.Affine(%x,%m_node.scale,%m_node.shift) "m_node" -> FP32[N,2,4,4]
%c = swizzle.Clamp(%m) {high=6,low=-1} "c_node" -> FP32[N,2,4,4]
%y = swizzle.Pad(%c) {pads=[1,2,3,4],value=0.5} "y_node" -> FP32[N,2,8,10]
output "y" = %y
)");
}

TEST(CanonicaliseTest, AxesAsInputs) {
  OnnxBuilder builder(18);
  builder.Input("x", {-1, 2, 4, 4}).Int64s("plane", {2}, {-1, 2}).Int64s("pads", {4}, {1, 2, 3, 4});
  builder.Node("Pad", {"x", "pads", "", "plane"}, {"p"});
  builder.Node("ReduceMean", {"p", "plane"}, {"y"}, {{"keepdims", int64_t{0}}}).Output("y");
  const std::string text = After("canonicalise", 0, builder);
  EXPECT_NE(text.find("Pad(%x) {pads=[2,1,4,3],value=0}"), std::string::npos) << text;
  EXPECT_NE(text.find("AveragePool(%p) {dilations=[1,1],kernel_shape=[10,8]"), std::string::npos) << text;
  EXPECT_NE(text.find("-> FP32[N,2]\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace swizzle
