// Each operator that has a function on a device, between two layers, against the interpreter.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "model_loader/offload/operators.h"
#include "tests/model_loader/offload/on_device.h"

namespace swizzle::offload {
namespace {

using swizzle::testing::OnDeviceTest;
using swizzle::testing::OnnxBuilder;
using swizzle::testing::Weights;

using Ints = std::vector<int64_t>;

// Makes "y" of "h", which is [batch, 6, 8] or, for planes, [batch, 4, 6, 10].
struct OperatorCase {
  const char* name;
  bool planes;
  std::function<void(OnnxBuilder&)> add;
};

OperatorCase Simple(const char* op) {
  return {op, false, [op](OnnxBuilder& builder) { builder.Node(op, {"h"}, {"y"}); }};
}

// Of positive numbers.
OperatorCase Positive(const char* op) {
  return {op, false, [op](OnnxBuilder& builder) { builder.Node("Exp", {"h"}, {"e"}).Node(op, {"e"}, {"y"}); }};
}

// With a constant that broadcasts; and what comes of it as a number.
OperatorCase Pair(const char* op) {
  return {op, false, [op](OnnxBuilder& builder) {
            builder.Floats("c", {6, 1}, {1, -2, 3, 0.5f, -1, 2}).Node(op, {"h", "c"}, {"y"});
          }};
}
OperatorCase Test(const char* op) {
  return {op, false, [op](OnnxBuilder& builder) {
            builder.Floats("c", {6, 1}, {0, -2, 3, 0.5f, -1, 2}).Node(op, {"h", "c"}, {"t"});
            builder.Node("Cast", {"t"}, {"y"}, {{"to", int64_t{1}}});
          }};
}
OperatorCase Logic(const char* op) {
  return {op, false, [op](OnnxBuilder& builder) {
            builder.Floats("c", {}, {0}).Floats("d", {8}, Weights(8)).Node("Greater", {"h", "c"}, {"t"});
            builder.Node("Less", {"h", "d"}, {"u"}).Node(op, {"t", "u"}, {"v"}).Node("Not", {"v"}, {"n"});
            builder.Node("Where", {"n", "h", "d"}, {"y"});
          }};
}

OperatorCase Reduction(const char* op) {
  return {op, false, [op](OnnxBuilder& builder) {
            // As an attribute below opset 18, but for ReduceSum.
            if (std::string(op) == "ReduceSum") {
              builder.Int64s("axes", {1}, {1}).Node(op, {"h", "axes"}, {"y"}, {{"keepdims", int64_t{0}}});
            } else {
              builder.Node(op, {"h"}, {"y"}, {{"axes", Ints{0, -1}}});
            }
          }};
}

OperatorCase Case(const char* name, bool planes, std::function<void(OnnxBuilder&)> add) {
  return {name, planes, std::move(add)};
}

std::vector<OperatorCase> Shapes() {
  return {
      Case("Concat", false,
           [](OnnxBuilder& b) {
             b.Node("Concat", {"h", "h", "h"}, {"y"}, {{"axis", int64_t{1}}});
           }),
      Case("DepthToSpace", true,
           [](OnnxBuilder& b) {
             b.Node("DepthToSpace", {"h"}, {"y"}, {{"blocksize", int64_t{2}}});
           }),
      Case("SpaceToDepth", true,
           [](OnnxBuilder& b) {
             b.Node("SpaceToDepth", {"h"}, {"y"}, {{"blocksize", int64_t{2}}});
           }),
      Case("Expand", false,
           [](OnnxBuilder& b) {
             b.Int64s("to", {4}, {3, 1, 6, 8}).Node("Expand", {"h", "to"}, {"y"});
           }),
      Case("Flatten", false,
           [](OnnxBuilder& b) {
             b.Node("Flatten", {"h"}, {"y"}, {{"axis", int64_t{2}}});
           }),
      Case("Identity", false, [](OnnxBuilder& b) { b.Node("Identity", {"h"}, {"y"}); }),
      Case("Reshape", false,
           [](OnnxBuilder& b) {
             b.Int64s("to", {3}, {0, 8, 6}).Node("Reshape", {"h", "to"}, {"y"});
           }),
      Case("Slice", false,
           [](OnnxBuilder& b) {
             b.Int64s("from", {2}, {5, 1}).Int64s("end", {2}, {-100, 7}).Int64s("axes", {2}, {1, 2});
             b.Int64s("steps", {2}, {-2, 3}).Node("Slice", {"h", "from", "end", "axes", "steps"}, {"y"});
           }),
      Case("Split", false,
           [](OnnxBuilder& b) {
             b.Int64s("parts", {2}, {2, 6}).Node("Split", {"h", "parts"}, {"p", "q"}, {{"axis", int64_t{2}}});
             b.Node("Concat", {"q", "p"}, {"y"}, {{"axis", int64_t{2}}});
           }),
      Case(
          "Squeeze", false,
          [](OnnxBuilder& b) {
            b.Int64s("axes", {2}, {0, 2}).Node("Unsqueeze", {"h", "axes"}, {"u"}).Node("Squeeze", {"u", "axes"}, {"y"});
          }),
      Case("Unsqueeze", false,
           [](OnnxBuilder& b) {
             b.Int64s("axes", {1}, {1}).Node("Unsqueeze", {"h", "axes"}, {"y"});
           }),
      Case("Tile", false,
           [](OnnxBuilder& b) {
             b.Int64s("times", {3}, {1, 2, 3}).Node("Tile", {"h", "times"}, {"y"});
           }),
      Case("Transpose", true,
           [](OnnxBuilder& b) {
             b.Node("Transpose", {"h"}, {"y"}, {{"perm", Ints{2, 0, 3, 1}}});
           }),
  };
}

std::vector<OperatorCase> Others() {
  return {
      Case("Pad", false,
           [](OnnxBuilder& b) {
             b.Int64s("amounts", {6}, {0, 2, 1, 1, 0, 3}).Floats("with", {}, {-2.5f});
             b.Node("Pad", {"h", "amounts", "with"}, {"y"});
           }),
      Case("Cast", false,
           [](OnnxBuilder& b) {
             b.Node("Cast", {"h"}, {"i"}, {{"to", int64_t{7}}}).Int64s("c", {8}, {1, -2, 3, 4, 5, 0, 7, -1});
             b.Node("Div", {"i", "c"}, {"d"}).Node("Mul", {"d", "c"}, {"m"}).Node("Sub", {"m", "i"}, {"s"});
             b.Node("Cast", {"s"}, {"y"}, {{"to", int64_t{1}}});
           }),
      Case("Clip", false,
           [](OnnxBuilder& b) {
             b.Floats("low", {}, {-0.2f}).Node("Clip", {"h", "low"}, {"y"});
           }),
      Case("CumSum", false,
           [](OnnxBuilder& b) {
             b.Int64s("axis", {}, {1}).Node("CumSum", {"h", "axis"}, {"y"}, {{"reverse", int64_t{1}}});
           }),
      Case("Elu", false,
           [](OnnxBuilder& b) {
             b.Node("Elu", {"h"}, {"y"}, {{"alpha", 0.5f}});
           }),
      Case("Gather", false,
           [](OnnxBuilder& b) {
             b.Int64s("at", {2}, {3, -1}).Node("Gather", {"h", "at"}, {"y"}, {{"axis", int64_t{1}}});
           }),
      Case("Gemm", false,
           [](OnnxBuilder& b) {
             b.Int64s("to", {2}, {8, -1}).Node("Reshape", {"h", "to"}, {"m"}).Node("Sin", {"m"}, {"n"});
             b.Node("Gemm", {"m", "n"}, {"y"}, {{"transB", int64_t{1}}});
           }),
      Case("HardSigmoid", false,
           [](OnnxBuilder& b) {
             b.Node("HardSigmoid", {"h"}, {"y"}, {{"alpha", 0.3f}});
           }),
      Case("LayerNormalization", false,
           [](OnnxBuilder& b) {
             b.Floats("scale", {6, 8}, Weights(48))
                 .Node("LayerNormalization", {"h", "scale"}, {"y"}, {{"axis", int64_t{1}}});
           }),
  };
}

std::vector<OperatorCase> MoreOthers() {
  return {
      Case("LeakyRelu", false, [](OnnxBuilder& b) { b.Node("LeakyRelu", {"h"}, {"y"}); }),
      Case("MatMul", false,
           [](OnnxBuilder& b) {
             b.Node("Transpose", {"h"}, {"t"}, {{"perm", Ints{0, 2, 1}}}).Node("MatMul", {"t", "h"}, {"y"});
           }),
      Case("Max", false,
           [](OnnxBuilder& b) {
             b.Floats("c", {8}, Weights(8)).Floats("d", {}, {0}).Node("Max", {"h", "c", "d"}, {"y"});
           }),
      Case("Min", false,
           [](OnnxBuilder& b) {
             b.Floats("c", {8}, Weights(8)).Node("Min", {"h", "c"}, {"y"});
           }),
      Case("Sum", false,
           [](OnnxBuilder& b) {
             b.Floats("c", {8}, Weights(8)).Node("Sum", {"h", "c", "h"}, {"y"});
           }),
      Case("Pow", false,
           [](OnnxBuilder& b) {
             b.Floats("c", {8}, {2, 3, 1, 0, 2, 4, 2, 3}).Node("Pow", {"h", "c"}, {"y"});
           }),
      Case("Softmax", false,
           [](OnnxBuilder& b) {
             b.Node("Softmax", {"h"}, {"y"}, {{"axis", int64_t{1}}});
           }),
  };
}

std::vector<OperatorCase> Planes() {
  const auto resize = [](const char* mode) {
    return [mode](OnnxBuilder& b) {
      b.Floats("scales", {4}, {1, 1, 2, 1.5f});
      b.Node("Resize", {"h", "", "scales"}, {"y"}, {{"mode", std::string(mode)}});
    };
  };
  return {
      // Weights that are no constants: no plan has them.
      Case("Conv", true,
           [](OnnxBuilder& b) {
             b.Floats("w", {6, 2, 3, 3}, Weights(108)).Floats("bias", {6}, Weights(6)).Node("Relu", {"h"}, {"r"});
             b.Node("ReduceMax", {"h"}, {"m"}, {{"keepdims", int64_t{0}}}).Node("Mul", {"w", "m"}, {"v"});
             b.Node("Conv", {"r", "v", "bias"}, {"y"},
                    {{"group", int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 2}}});
           }),
      Case("ConvTranspose", true,
           [](OnnxBuilder& b) {
             b.Floats("w", {4, 3, 3, 2}, Weights(72)).Floats("bias", {3}, Weights(3)).Node("Sin", {"h"}, {"r"});
             b.Node("ReduceMax", {"h"}, {"m"}, {{"keepdims", int64_t{0}}}).Node("Mul", {"w", "m"}, {"v"});
             b.Node("ConvTranspose", {"r", "v", "bias"}, {"y"}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 1}}});
           }),
      Case("GlobalAveragePool", true,
           [](OnnxBuilder& b) { b.Node("Sin", {"h"}, {"s"}).Node("GlobalAveragePool", {"s"}, {"y"}); }),
      Case("GlobalMaxPool", true, [](OnnxBuilder& b) { b.Node("GlobalMaxPool", {"h"}, {"y"}); }),
      Case("InstanceNormalization", true,
           [](OnnxBuilder& b) {
             b.Floats("scale", {4}, Weights(4)).Floats("shift", {4}, Weights(4));
             b.Node("InstanceNormalization", {"h", "scale", "shift"}, {"y"}, {{"epsilon", 1e-3f}});
           }),
      Case("MaxPool", true,
           [](OnnxBuilder& b) {
             b.Node("Sin", {"h"}, {"s"})
                 .Node("MaxPool", {"s"}, {"m"}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
             b.Node("Cos", {"m"}, {"y"});
           }),
      Case("Resize", true, resize("linear")),
      Case("ResizeNearest", true, resize("nearest")),
  };
}

std::vector<OperatorCase> AllCases() {
  std::vector<OperatorCase> cases;
  for (const char* op : {"Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Neg", "Relu", "Sigmoid", "Sin",
                         "Softplus", "Tanh", "Reciprocal"}) {
    cases.push_back(Simple(op));
  }
  for (const char* op : {"Log", "Sqrt"}) cases.push_back(Positive(op));
  for (const char* op : {"Add", "Div", "Mul", "PRelu", "Sub"}) cases.push_back(Pair(op));
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) cases.push_back(Test(op));
  for (const char* op : {"And", "Or"}) cases.push_back(Logic(op));
  for (const char* op : {"ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"}) {
    cases.push_back(Reduction(op));
  }
  for (auto more : {Shapes, Others, MoreOthers, Planes}) std::ranges::move(more(), std::back_inserter(cases));
  return cases;
}

OnnxBuilder ModelOf(const OperatorCase& operator_case) {
  OnnxBuilder builder;
  if (operator_case.planes) {
    builder.Input("x", {-1, 3, 6, 10}).Floats("w1", {4, 3, 1, 1}, Weights(12)).Node("Conv", {"x", "w1"}, {"linear"});
  } else {
    builder.Input("x", {-1, 6, 8}).Floats("w1", {8, 8}, Weights(64)).Node("MatMul", {"x", "w1"}, {"linear"});
  }
  builder.Node("Identity", {"linear"}, {"h"});
  operator_case.add(builder);
  builder.Node("Identity", {"y"}, {"z"}).Output("z");
  return builder;
}

class DeviceOperatorsTest : public OnDeviceTest {};

TEST_F(DeviceOperatorsTest, ComputeWhatTheInterpreterDoes) {
  for (const OperatorCase& operator_case : AllCases()) {
    SCOPED_TRACE(operator_case.name);
    Plan(ModelOf(operator_case));
    if (HasFatalFailure()) return;
    EXPECT_EQ(regional_.OperatorCounts(), "");
    for (int64_t batch : {2, 5}) {
      for (int seed = 0; seed < 2; ++seed) {
        ExpectSame({operator_case.planes ? Shape{batch, 3, 6, 10} : Shape{batch, 6, 8}}, seed);
      }
    }
  }
}

TEST_F(DeviceOperatorsTest, EachHasACase) {
  std::set<std::string_view> exercised = {"Where", "Not", "Upsample", "Gelu",
                                          "GroupNormalization"};  // beside others; of other opsets
  for (const OperatorCase& operator_case : AllCases()) exercised.insert(operator_case.name);
  for (const DeviceOperator& row : DeviceOperators()) EXPECT_TRUE(exercised.contains(row.op)) << row.op;
}

TEST_F(DeviceOperatorsTest, OfOtherOpsets) {
  OnnxBuilder gelu(20);
  gelu.Input("x", {-1, 8}).Floats("w1", {8, 8}, Weights(64)).Node("MatMul", {"x", "w1"}, {"h"});
  gelu.Node("Sin", {"h"}, {"s"}).Node("Gelu", {"s"}, {"g"}, {{"approximate", std::string("tanh")}});
  gelu.Node("Cos", {"g"}, {"z"}).Output("z");
  Plan(gelu);
  ExpectSame({{3, 8}});
  OnnxBuilder upsample(9);
  upsample.Input("x", {-1, 3, 4, 4}).Floats("w1", {4, 3, 1, 1}, Weights(12)).Node("Conv", {"x", "w1"}, {"h"});
  upsample.Floats("scales", {4}, {1, 1, 2, 2}).Node("Upsample", {"h", "scales"}, {"z"}).Output("z");
  Plan(upsample);
  ExpectSame({{3, 3, 4, 4}});
  for (const int opset : {18, 21}) {
    OnnxBuilder groups(opset);
    const int64_t scales = opset < 21 ? 2 : 4;
    groups.Input("x", {-1, 3, 4, 4}).Floats("w1", {4, 3, 1, 1}, Weights(12)).Node("Conv", {"x", "w1"}, {"h"});
    groups.Floats("scale", {scales}, Weights(scales)).Floats("shift", {scales}, Weights(scales));
    groups.Node("GroupNormalization", {"h", "scale", "shift"}, {"z"}, {{"num_groups", int64_t{2}}}).Output("z");
    Plan(groups);
    EXPECT_EQ(regional_.OperatorCounts(), "");
    ExpectSame({{3, 3, 4, 4}});
  }
}

}  // namespace
}  // namespace swizzle::offload
