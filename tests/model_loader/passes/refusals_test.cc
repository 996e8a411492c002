// Models that are read but can't be run, or break an operator's rules: each gets one error that names the node.
#include <functional>
#include <limits>

#include "gtest/gtest.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::kInvalid;
using testing::kUnsupported;
using testing::OnnxBuilder;
using AttributeMap = std::map<std::string, Attribute>;
using Ints = std::vector<int64_t>;

struct Refusal {
  const char* name;
  std::function<void(OnnxBuilder&)> make;  // of x [N,4,8,8] and m [N,6], the output y
  StatusCode code;
  const char* message;
  int64_t opset = 17;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, NamesTheNode) {
  OnnxBuilder builder(GetParam().opset);
  builder.Input("x", {-1, 4, 8, 8}).Input("m", {-1, 6});
  GetParam().make(builder);
  builder.Output("y");
  auto graph = builder.Read();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto fusions = RunPasses(*graph);
  const Status status = fusions.ok() ? Lower(*std::move(graph)).status() : fusions.status();
  EXPECT_THAT(status, IsError(GetParam().code, GetParam().message));
}

// A convolution of x by a weight of this shape.
std::function<void(OnnxBuilder&)> Conv(const Shape& weight, const AttributeMap& attributes = {}) {
  return [=](OnnxBuilder& b) { b.Counting("w", weight).Node("Conv", {"x", "w"}, {"y"}, attributes); };
}

// A node that reads x (or m) and the constant k.
std::function<void(OnnxBuilder&)> WithConstant(const char* op, const char* input, const Shape& shape,
                                               const AttributeMap& attributes = {}) {
  return [=](OnnxBuilder& b) { b.Counting("k", shape).Node(op, {input, "k"}, {"y"}, attributes); };
}

std::function<void(OnnxBuilder&)> WithIntegers(const char* op, const char* input, const Ints& integers,
                                               const AttributeMap& attributes = {}) {
  return [=](OnnxBuilder& b) {
    b.Int64s("k", {static_cast<int64_t>(integers.size())}, integers).Node(op, {input, "k"}, {"y"}, attributes);
  };
}

std::function<void(OnnxBuilder&)> Alone(const char* op, const char* input, const AttributeMap& attributes = {}) {
  return [=](OnnxBuilder& b) { b.Node(op, {input}, {"y"}, attributes); };
}

std::function<void(OnnxBuilder&)> BatchNorm(int64_t channels, const AttributeMap& attributes = {}) {
  return [=](OnnxBuilder& b) {
    for (const char* name : {"s", "t", "u", "v"}) b.Counting(name, {channels});
    b.Node("BatchNormalization", {"x", "s", "t", "u", "v"}, {"y"}, attributes);
  };
}

const Refusal kRefusals[] = {
    // Convolutions.
    {"ConvGroupZero", Conv({4, 4, 1, 1}, {{"group", int64_t{0}}}), kInvalid, "in 0 groups"},
    {"ConvChannels", Conv({4, 3, 1, 1}), kInvalid, "its weight [4,3,1,1] does not fit 4 input channels"},
    {"ConvOneDimensional", Conv({4, 4, 3}), kUnsupported, "not those of a convolution over height and width"},
    {"ConvOfMatrix", [](OnnxBuilder& b) { b.Counting("w", {4, 6, 1, 1}).Node("Conv", {"m", "w"}, {"y"}); },
     kUnsupported, "not those of a convolution"},
    {"ConvTransposeOfGroups", WithConstant("ConvTranspose", "x", {4, 2, 2, 2}, {{"group", int64_t{2}}}), kUnsupported,
     "without groups and dilations"},
    {"ConvEmpty", Conv({0, 4, 1, 1}), kInvalid, "its weight is empty"},
    {"ConvKernelMismatch", Conv({4, 4, 3, 3}, {{"kernel_shape", Ints{5, 5}}}), kInvalid, "differs from its weight's"},
    {"ConvTooLarge", Conv({1, 4, 9, 1}), kInvalid, "does not fit its input"},
    {"ConvBias",
     [](OnnxBuilder& b) { b.Counting("w", {2, 4, 1, 1}).Counting("b", {3}).Node("Conv", {"x", "w", "b"}, {"y"}); },
     kInvalid, "its bias has shape [3] instead of [2]"},
    {"ConvWeightComputed", [](OnnxBuilder& b) { b.Node("Conv", {"x", "x"}, {"y"}); }, kUnsupported,
     "its weight is not a constant"},
    {"ConvWeightType",
     [](OnnxBuilder& b) { b.Int64s("w", {1, 4, 1, 1}, {1, 2, 3, 4}).Node("Conv", {"x", "w"}, {"y"}); },
     kUnsupported, "its weight is INT64"},
    {"ConvOfConstant",
     [](OnnxBuilder& b) { b.Counting("k", {1, 4, 8, 8}).Counting("w", {1, 4, 1, 1}).Node("Conv", {"k", "w"}, {"y"}); },
     kUnsupported, "its input 'k' is a constant"},
    {"ConvStrideType", Conv({4, 4, 1, 1}, {{"strides", int64_t{2}}}), kInvalid, "attribute 'strides' is not a list"},

    // Pools.
    {"PoolIndices",
     [](OnnxBuilder& b) { b.Node("MaxPool", {"x"}, {"y", "indices"}, {{"kernel_shape", Ints{2, 2}}}); }, kUnsupported,
     "indices"},
    {"PoolWithoutKernel", Alone("MaxPool", "x"), kInvalid, "kernel_shape"},
    {"PoolOfMatrix", Alone("MaxPool", "m", {{"kernel_shape", Ints{2, 2}}}), kUnsupported, "two spatial dimensions"},
    {"PoolInPadding", Alone("MaxPool", "x", {{"kernel_shape", Ints{1, 1}}, {"pads", Ints{1, 0, 0, 0}}}), kInvalid,
     "layer 0 ('y_node'): one of its windows lies in the padding"},
    {"GlobalPoolOfMatrix", Alone("GlobalAveragePool", "m"), kUnsupported, "is not [batch, channels, height, width]"},
    {"MeanWithoutChannels", Alone("ReduceMean", "x", {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}), kUnsupported,
     "only reductions of height and width"},
    {"MeanOverAll", Alone("ReduceMean", "x"), kUnsupported, "only reductions of height and width"},
    {"MeanAxisRange", Alone("ReduceMean", "x", {{"axes", Ints{2, 4}}}), kInvalid, "axis 4"},

    // Linear layers.
    {"GemmTransA", WithConstant("Gemm", "m", {6, 3}, {{"transA", int64_t{1}}}), kUnsupported, "transA"},
    {"GemmDepth", WithConstant("Gemm", "m", {5, 3}), kInvalid, "its weight [5,3] does not fit 6 input channels"},
    {"GemmOfImage", WithConstant("Gemm", "x", {4, 3}), kUnsupported, "flatten it first"},
    {"GemmBias",
     [](OnnxBuilder& b) { b.Counting("w", {6, 3}).Counting("b", {2, 3}).Node("Gemm", {"m", "w", "b"}, {"y"}); },
     kUnsupported, "its bias [2,3]"},
    {"MatMulWeightComputed", [](OnnxBuilder& b) { b.Node("MatMul", {"m", "m"}, {"y"}); }, kUnsupported,
     "its weight is not a constant"},
    {"MatMulOfConstant",
     [](OnnxBuilder& b) { b.Counting("k", {5, 6}).Node("MatMul", {"k", "m"}, {"y"}); }, kUnsupported,
     "its input 'k' is a constant"},
    {"MatMulVector", WithConstant("MatMul", "m", {6}), kUnsupported, "its weight [6] is no matrix"},

    // Element-wise.
    {"DivOfActivations", [](OnnxBuilder& b) { b.Node("Div", {"x", "x"}, {"y"}); }, kUnsupported,
     "Div node 'y_node' (opset 17) of two activations"},
    {"MulOfOtherPlane",
     [](OnnxBuilder& b) {
       b.Counting("w", {1, 4, 2, 2}).Node("Conv", {"x", "w"}, {"c"}).Node("Mul", {"x", "c"}, {"y"});
     },
     kUnsupported, "Mul node 'y_node': activations [-1,4,8,8] and [-1,1,7,7] differ in shape"},
    {"SumOfOtherPlane",
     [](OnnxBuilder& b) { b.Node("GlobalAveragePool", {"x"}, {"g"}).Node("Sum", {"x", "g"}, {"y"}); }, kUnsupported,
     "Sum node 'y_node' of [-1,4,8,8] and [-1,4,1,1]"},
    {"OldAxis",
     [](OnnxBuilder& b) { b.Counting("k", {4}).Node("Mul", {"x", "k"}, {"y"}, {{"axis", int64_t{2}}}); }, kUnsupported,
     "its constant [4,1] is neither", 6},
    {"OldAxisRange",
     [](OnnxBuilder& b) { b.Counting("k", {4, 1}).Node("Mul", {"x", "k"}, {"y"}, {{"axis", int64_t{3}}}); },
     kUnsupported, "[4,1] at axis 3 does not broadcast", 6},
    {"FunctionNotFinite",
     Alone("LeakyRelu", "x", {{"alpha", std::numeric_limits<float>::infinity()}}), kInvalid, "is not finite"},
    {"OldClipNotANumber", Alone("Clip", "x", {{"min", std::numeric_limits<float>::quiet_NaN()}}), kInvalid,
     "a bound is not a number", 6},
    {"BatchNormNotSpatial", BatchNorm(4, {{"spatial", int64_t{0}}}), kUnsupported, "spatial 0", 8},
    {"DropoutNotTest", Alone("Dropout", "x"), kUnsupported, "training mode (is_test 0)", 6},
    {"MeanAxesComputed",
     [](OnnxBuilder& b) { b.Node("ReduceMean", {"x", "m"}, {"y"}); }, kUnsupported, "its axes are not constant", 18},
    {"AddRepeatsBoth",
     [](OnnxBuilder& b) {
       b.Counting("w", {1, 4, 1, 1}).Node("Conv", {"x", "w"}, {"c"}).Node("GlobalAveragePool", {"x"}, {"g"});
       b.Node("Add", {"c", "g"}, {"y"});
     },
     kUnsupported, "differ in shape"},
    {"AddPerPosition", WithConstant("Add", "x", {8, 8}), kUnsupported, "neither a scalar nor one number per channel"},
    {"AddPerWidth", WithConstant("Add", "x", {8}), kUnsupported, "neither a scalar"},
    {"AddHigherRank", WithConstant("Add", "x", {1, 1, 1, 1, 1}), kUnsupported, "neither a scalar"},
    {"DivByZero",
     [](OnnxBuilder& b) { b.Floats("k", {}, {0}).Node("Div", {"x", "k"}, {"y"}); }, kInvalid, "divides by 0"},
    {"DivByActivation", [](OnnxBuilder& b) { b.Floats("k", {}, {1}).Node("Div", {"k", "x"}, {"y"}); }, kUnsupported,
     "by an activation"},
    {"ClipNotANumber",
     [](OnnxBuilder& b) { b.Floats("k", {}, {std::numeric_limits<float>::quiet_NaN()}).Node("Clip", {"x",
     "k"}, {"y"}); },
     kInvalid, "its minimum is not one number"},
    {"ClipVector", WithConstant("Clip", "x", {2}), kInvalid, "its minimum is not one number"},
    {"ClipComputed",
     [](OnnxBuilder& b) { b.Node("Clip", {"x", "x"}, {"y"}); }, kUnsupported, "its minimum is not a constant"},
    {"BatchNormTraining", BatchNorm(4, {{"training_mode", int64_t{1}}}), kUnsupported, "training mode"},
    {"BatchNormChannels", BatchNorm(3), kInvalid, "its scale has shape [3] instead of [4]"},
    {"BatchNormVariance", [](OnnxBuilder& b) {
       b.Counting("s", {4}).Floats("v", {4}, {1, 1, 1, -1}).Node("BatchNormalization", {"x", "s", "s", "s",
     "v"}, {"y"});
     }, kInvalid, "not finite"},
    {"SoftmaxWidth", Alone("Softmax", "x"), kUnsupported, "over axis 3 of [-1,4,8,8]"},
    {"SoftmaxCoerced", Alone("Softmax", "x", {{"axis", int64_t{1}}}), kUnsupported, "(opset 12) over axis 1", 12},
    {"SoftmaxAxis", Alone("Softmax", "m", {{"axis", int64_t{2}}}), kInvalid, "axis 2"},
    {"DropoutTraining",
     [](OnnxBuilder& b) {
       auto& flag = *b.graph().add_initializer();
       flag.set_name("training");
       flag.set_data_type(onnx::TensorProto::BOOL);
       flag.set_raw_data("\x01");
       b.Node("Dropout", {"x", "", "training"}, {"y"});
     },
     kUnsupported, "training mode"},
    {"DropoutMask",
     [](OnnxBuilder& b) { b.Node("Dropout", {"x"}, {"d", "mask"}).Node("Add", {"d", "mask"}, {"y"}); }, kUnsupported,
     "its mask is used"},
    {"ConstantTwice",
     [](OnnxBuilder& b) {
       b.Node("Constant", {}, {"c"}, {{"value_float", 1.0f}, {"value_int", int64_t{1}}}).Node("Add", {"x", "c"}, {"y"});
     },
     kInvalid, "has 2 values"},

    // Pads.
    {"PadReflect", WithIntegers("Pad", "x", {0, 0, 1, 1, 0, 0, 1, 1}, {{"mode", "reflect"}}), kUnsupported,
     "'reflect'"},
    {"PadChannels", WithIntegers("Pad", "x", {0, 1, 0, 0, 0, 0, 0, 0}), kUnsupported,
     "only padding of height and width"},
    {"PadNegative", WithIntegers("Pad", "x", {0, 0, -1, 0, 0, 0, 0, 0}), kUnsupported, "only padding"},
    {"PadCount", WithIntegers("Pad", "x", {0, 0, 1, 1}), kInvalid, "4 amounts of padding"},
    {"PadByOne",
     [](OnnxBuilder& b) {
       b.Int64s("k", {8}, {0, 0, 1, 1, 0, 0, 1, 1}).Floats("one", {}, {1}).Node("Pad", {"x", "k", "one"}, {"y"});
     },
     kUnsupported, "padding by 1"},

    // Shapes.
    {"ReshapeElements", WithIntegers("Reshape", "x", {0, 4, 8, 7}), kInvalid, "does not reshape to [-1,4,8,7]"},
    {"ReshapeInferred", WithIntegers("Reshape", "x", {0, 7, -1}), kInvalid, "does not reshape to [-1,7,-1]"},
    {"ReshapeTwoInferred", WithIntegers("Reshape", "x", {0, -1, -1}), kInvalid, "does not reshape to"},
    {"ReshapeFixesBatch", WithIntegers("Reshape", "x", {1, 256}), kUnsupported, "does not keep dimension 0"},
    {"ReshapeIntoBatch", WithIntegers("Reshape", "x", {-1, 128}), kUnsupported, "does not keep dimension 0"},
    {"ReshapeToScalar", WithIntegers("Reshape", "x", {}), kUnsupported, "does not keep dimension 0"},
    {"ReshapeOverflow", WithIntegers("Reshape", "x", {0, int64_t{1} << 40, int64_t{1} << 40}), kInvalid,
     "does not reshape"},
    {"ReshapeZero", WithIntegers("Reshape", "x", {0, 0}, {{"allowzero", int64_t{1}}}), kInvalid, "does not reshape"},
    {"ReshapeComputed",
     [](OnnxBuilder& b) { b.Node("Relu", {"m"}, {"r"}).Node("Reshape", {"x", "r"}, {"y"}); }, kUnsupported,
     "its target shape is not known"},
    {"ReshapeMultiplesOfBatch",
     [](OnnxBuilder& b) {
       b.Int64s("two", {1}, {2}).Int64s("rest", {1}, {-1}).Int64s("zero", {1}, {0}).Node("Shape", {"x"}, {"s"});
       b.Node("Gather", {"s", "zero"}, {"n"}).Node("Mul", {"n", "two"}, {"n2"});
       b.Node("Concat", {"n2", "rest"}, {"t"}, {{"axis", int64_t{0}}}).Node("Reshape", {"x", "t"}, {"y"});
     },
     kUnsupported, "multiple of the batch"},
    {"FlattenAll", Alone("Flatten", "x", {{"axis", int64_t{0}}}), kUnsupported, "axis 0"},
    {"FlattenAxis", Alone("Flatten", "x", {{"axis", int64_t{9}}}), kInvalid, "axis 9"},
    {"SqueezeBatch", WithIntegers("Squeeze", "x", {0}), kUnsupported, "does not keep dimension 0"},
    {"SqueezeWidth", WithIntegers("Squeeze", "x", {3}), kInvalid, "dimension 3 is to be squeezed and is not 1"},
    {"UnsqueezeBatch", WithIntegers("Unsqueeze", "x", {0}), kUnsupported, "does not keep dimension 0"},
    {"GatherOfActivation", WithIntegers("Gather", "x", {0}), kUnsupported,
     "Gather node 'y_node' (opset 17) is supported on constants and shapes only"},
    {"TransposeOfAnEmptyMatrixOfHugeExtent",
     [](OnnxBuilder& b) { b.Floats("k", {int64_t{1} << 40, 0}, {}).Node("Transpose", {"k"}, {"y"}); }, kUnsupported,
     "Transpose node 'y_node': its input 'k' is a constant"},
    {"TransposeOfBatch", Alone("Transpose", "m"), kUnsupported, "does not keep dimension 0"},
    {"TransposeOfPlane", Alone("Transpose", "x", {{"perm", Ints{0, 1, 3, 2}}}), kUnsupported, "Transpose node"},
    {"TransposeOfTheMiddle", Alone("Transpose", "x", {{"perm", Ints{0, 2, 1, 3}}}), kUnsupported,
     "Transpose node 'y_node' (opset 17) of [-1,4,8,8] to [-1,8,4,8] is not supported"},
    {"TransposeReversed", Alone("Transpose", "x", {{"perm", Ints{0, 3, 2, 1}}}), kUnsupported,
     "Transpose node 'y_node' (opset 17) of [-1,4,8,8] to [-1,8,8,4] is not supported"},
    {"TransposePerm", Alone("Transpose", "x", {{"perm", Ints{0, 1, 1, 2}}}), kInvalid, "not a permutation"},
    {"TransposeLongPerm", Alone("Transpose", "x", {{"perm", Ints{0, 1, 2, 3, 4, 5, 6, 7, 8}}}), kInvalid,
     "not a permutation of 4 axes"},
    {"TransposeRank", Alone("Transpose", "x", {{"perm", Ints{0, 2, 1}}}), kInvalid, "not a permutation"},
    {"SliceWithoutBounds",
     [](OnnxBuilder& b) { b.Node("Shape", {"x"}, {"s"}).Node("Slice", {"s"}, {"t"}).Node("Reshape", {"x", "t"},
     {"y"}); }, kInvalid, "lacks its starts"},
    {"ConcatOfColumns", [](OnnxBuilder& b) { b.Node("Concat", {"x", "x"}, {"y"}, {{"axis", int64_t{3}}}); },
     kUnsupported, "along axis 3 is not supported"},
    {"ConcatOfBatches", [](OnnxBuilder& b) { b.Node("Concat", {"x", "x"}, {"y"}, {{"axis", int64_t{0}}}); },
     kUnsupported, "along axis 0 is not supported"},
    {"ConcatOfOtherShapes", [](OnnxBuilder& b) { b.Node("Concat", {"x", "m"}, {"y"}, {{"axis", int64_t{1}}}); },
     kInvalid, "differ beside axis 1"},
    {"ConcatWithConstant", WithConstant("Concat", "x", {1, 1, 8, 8}, {{"axis", int64_t{1}}}), kUnsupported,
     "its input 'k' is a constant"},
    {"ConcatAxis", [](OnnxBuilder& b) { b.Node("Concat", {"x", "x"}, {"y"}, {{"axis", int64_t{4}}}); }, kInvalid,
     "axis 4"},
    {"SliceBackwards",
     [](OnnxBuilder& b) {
       b.Int64s("start", {1}, {4}).Int64s("end", {1}, {1}).Int64s("axis", {1}, {2}).Int64s("step", {1}, {-1});
       b.Node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
     },
     kUnsupported, "along axis 2 by steps of -1 is not supported"},
    {"SliceOfChannelsAndRows",
     [](OnnxBuilder& b) {
       b.Int64s("start", {2}, {1, 1}).Int64s("end", {2}, {3, 3}).Int64s("axis", {2}, {1, 2});
       b.Node("Slice", {"x", "start", "end", "axis"}, {"y"});
     },
     kUnsupported, "a part of planes, and of channels"},
    {"SliceOfNothing",
     [](OnnxBuilder& b) {
       b.Int64s("start", {1}, {3}).Int64s("end", {1}, {3}).Int64s("axis", {1}, {1});
       b.Node("Slice", {"x", "start", "end", "axis"}, {"y"});
     },
     kUnsupported, "takes nothing"},
    {"SplitOfRows",
     [](OnnxBuilder& b) { b.Node("Split", {"x"}, {"p", "q"}, {{"axis", int64_t{2}}}).Node("Add", {"p", "q"}, {"y"}); },
     kUnsupported, "along axis 2 is not supported"},
    {"SplitOfOtherSum",
     [](OnnxBuilder& b) {
       b.Int64s("sizes", {2}, {2, 3}).Node("Split", {"x", "sizes"}, {"p", "q"}, {{"axis", int64_t{1}}});
       b.Node("Add", {"p", "q"}, {"y"});
     },
     kInvalid, "do not add up to 4"},
    {"DepthToSpaceOfFewChannels", Alone("DepthToSpace", "x", {{"blocksize", int64_t{3}}}), kInvalid, "blocks of 3"},
    {"DepthToSpaceOfMatrix", Alone("DepthToSpace", "m", {{"blocksize", int64_t{2}}}), kInvalid, "has no result"},
    {"ResizeWithoutScales", Alone("Resize", "x"), kUnsupported, "its scales or sizes are not known"},
    {"ResizeOfChannels",
     [](OnnxBuilder& b) { b.Floats("s", {4}, {1, 2, 2, 2}).Node("Resize", {"x", "", "s"}, {"y"}); }, kUnsupported,
     "only of height and width"},
    {"ResizeOfBatch", [](OnnxBuilder& b) { b.Floats("s", {4}, {2, 1, 2, 2}).Node("Resize", {"x", "", "s"}, {"y"}); },
     kUnsupported, "only of height and width"},
    {"ResizeToNothing",
     [](OnnxBuilder& b) { b.Floats("s", {4}, {1, 1, 0.01f, 2}).Node("Resize", {"x", "", "s"}, {"y"}); }, kInvalid,
     "which makes 0 of 8"},
    {"ResizeWithAntialias",
     [](OnnxBuilder& b) {
       b.Floats("s", {4}, {1, 1, 0.5f, 0.5f});
       b.Node("Resize", {"x", "", "s"}, {"y"}, {{"mode", std::string("linear")}, {"antialias", int64_t{1}}});
     },
     kUnsupported, "is not supported", 18},
    {"CastToHalf", Alone("Cast", "x", {{"to", int64_t{10}}}), kUnsupported, "activations are FP32"},
    {"ShapeAsActivation",
     [](OnnxBuilder& b) { b.Node("Shape", {"x"}, {"s"}).Node("Relu", {"s"}, {"y"}); }, kUnsupported,
     "its input 's' is no FP32 activation"},

    // Outputs and inputs.
    {"ShapeAsOutput", Alone("Shape", "x"), kUnsupported, "graph output 'y' is a constant or a shape"},
    {"ConstantAsOutput", [](OnnxBuilder& b) { b.Counting("y", {2}); }, kUnsupported, "graph output 'y' is a constant"},
    {"BatchesDiffer", [](OnnxBuilder& b) { b.Input("z", {2, 3}).Node("Relu", {"x"}, {"y"}); }, kUnsupported,
     "'x' and 'z' differ in dimension 0"},
    {"InputTooLarge", [](OnnxBuilder& b) { b.Input("z", {-1, 1 << 20, 1 << 20}).Node("Relu", {"x"}, {"y"}); }, kInvalid,
     "graph input 'z'"},
    {"FirstOutputLeftOut",
     [](OnnxBuilder& b) {
       b.Node("MaxPool", {"x"}, {"p", "i"}, {{"kernel_shape", Ints{2, 2}}}).Node("Relu", {"i"}, {"y"});
       b.graph().mutable_node(0)->set_output(0, "");
     },
     kInvalid, "leaves out its first output"},
};

INSTANTIATE_TEST_SUITE_P(Models, RefusalTest, ::testing::ValuesIn(kRefusals),
                         [](const auto& refusal) { return std::string(refusal.param.name); });

// One small constant that many nodes would each copy. What is refused for its size runs otherwise.
TEST(SharingTest, IsBounded) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2048}).Floats("w", {2048, 2048}, std::vector<float>(2048 * 2048, 1.0f));
  std::string from = "x";
  for (int i = 0; i < 80; ++i) {
    const std::string to = "v" + std::to_string(i);
    builder.Node("MatMul", {from, "w"}, {to});
    from = to;
  }
  auto graph = builder.Output(from).Read();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(RunPasses(*graph), IsError(kUnsupported, "80 times over"));
}

// Wide activations that constants would be spread over.
TEST(BudgetTest, BoundsNewConstants) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1 << 23}).Floats("k", {}, {2});
  std::string from = "x";
  for (int i = 0; i < 5; ++i) {
    const std::string to = "v" + std::to_string(i);
    builder.Node("Mul", {from, "k"}, {to});
    from = to;
  }
  auto graph = builder.Output(from).Read();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(RunPasses(*graph), IsError(kUnsupported, "elements of new constants"));
}

}  // namespace
}  // namespace swizzle
