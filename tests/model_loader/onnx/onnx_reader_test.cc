#include "model_loader/onnx/onnx_reader.h"

#include <cstring>
#include <functional>
#include <limits>

#include "gtest/gtest.h"
#include "model_loader/graph/print.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using testing::OnnxBuilder;

// conv -> clip -> flatten -> gemm, a little of everything.
OnnxBuilder SmallModel(int64_t opset = 17) {
  OnnxBuilder builder(opset);
  builder.Input("x", {-1, 2, 4, 4}).Counting("w", {3, 2, 3, 3}).Counting("b", {3}).Floats("six", {}, {6});
  builder.Counting("fc", {5, 12}).Int64s("shape", {2}, {0, -1});
  builder.Node("Conv", {"x", "w", "b"}, {"c"}, {{"kernel_shape", std::vector<int64_t>{3, 3}}});
  builder.Node("Clip", {"c", "", "six"}, {"r"}).Node("Reshape", {"r", "shape"}, {"f"});
  builder.Node("Gemm", {"f", "fc"}, {"y"}, {{"transB", int64_t{1}}, {"alpha", 0.5f}}).Output("y");
  return builder;
}

StatusOr<Network> LoadAll(std::span<const std::byte> bytes) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadOnnx(bytes));
  SWIZZLE_RETURN_IF_ERROR(RunPasses(graph));
  return Lower(std::move(graph));
}

TEST(OnnxReaderTest, ReadsGraph) {
  OnnxBuilder builder = SmallModel();
  builder.model().set_producer_version("2");
  builder.graph().mutable_node(1)->clear_name();
  const auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->name, "test");
  EXPECT_EQ(graph->producer, "builder 2");
  EXPECT_EQ(graph->opset, 17);
  EXPECT_EQ(Print(*graph), R"(input %x: FP32[N,2,4,4]
constant %w: FP32[3,2,3,3]
constant %b: FP32[3] = {1,2,3}
constant %six: FP32[] = {6}
constant %fc: FP32[5,12]
constant %shape: INT64[2] = {0,-1}
%c = Conv(%x,%w,%b) {kernel_shape=[3,3]} "c_node" -> FP32[?]
%r = Clip(%c,_,%six) "Clip_1" -> FP32[?]
%f = Reshape(%r,%shape) "f_node" -> FP32[?]
%y = Gemm(%f,%fc) {alpha=0.5,transB=1} "y_node" -> FP32[?]
output "y" = %y
)");
}

TEST(OnnxReaderTest, AcceptsOpsetsInRange) {
  for (int64_t opset = kMinOpset; opset <= kMaxOpset; ++opset) EXPECT_THAT(SmallModel(opset).Read(), IsOk());
  EXPECT_THAT(SmallModel(5).Read(), IsError(StatusCode::kUnimplemented, "opset 5; supported are 6 to 26"));
  EXPECT_THAT(SmallModel(27).Read(), IsError(StatusCode::kUnimplemented, "opset 27; supported are 6 to 26"));
}

TEST(OnnxReaderTest, IgnoresImportsOfOtherDomains) {
  OnnxBuilder builder = SmallModel();
  auto& import = *builder.model().add_opset_import();
  import.set_domain("com.example");
  import.set_version(1);
  EXPECT_THAT(builder.Read(), IsOk());
}

// ONNX's own operators have two names, and of several imports of them ONNX Runtime goes by the last.
TEST(OnnxReaderTest, TheLastImportOfTheDefaultOperatorsCounts) {
  const auto opset_of = [](std::vector<std::pair<std::string, int64_t>> imports) {
    OnnxBuilder builder = SmallModel();
    builder.model().clear_opset_import();
    for (const auto& [domain, version] : imports) {
      auto& import = *builder.model().add_opset_import();
      import.set_domain(domain);
      import.set_version(version);
    }
    const auto graph = builder.Read();
    EXPECT_THAT(graph, IsOk());
    return graph.ok() ? graph->opset : 0;
  };
  EXPECT_EQ(opset_of({{"", 13}, {"", 13}}), 13);
  EXPECT_EQ(opset_of({{"ai.onnx", 13}}), 13);
  EXPECT_EQ(opset_of({{"", 13}, {"ai.onnx", 13}}), 13);
  EXPECT_EQ(opset_of({{"", 13}, {"com.example", 1}, {"ai.onnx", 14}}), 14);
  EXPECT_EQ(opset_of({{"ai.onnx", 14}, {"", 13}}), 13);
  EXPECT_EQ(opset_of({{"", 3}, {"", 17}}), 17);
}

TEST(OnnxReaderTest, TakesWhatIsKnownOfPortsThatTheFileDoesNotDeclare) {
  OnnxBuilder builder = SmallModel();
  builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  builder.graph().mutable_output(0)->clear_type();
  EXPECT_THAT(builder.Read(), IsError(StatusCode::kInvalidArgument, "graph input 'x' has no tensor type with a shape"));
  ReadOptions options;
  options.ports["x"] = {DType::kFloat32, Shape{-1, 2, 4, 4}};
  options.ports["y"] = {DType::kFloat32, Shape{-1, 5}};
  const auto planned = ReadOnnx(builder.Bytes(), options);
  ASSERT_THAT(planned, IsOk());
  EXPECT_EQ(planned->ShapeOf(planned->inputs[0]), (Shape{-1, 2, 4, 4}));
  options.any_inputs = true;
  options.find_operator = FindInterpretedOperator;
  builder.graph().mutable_input(0)->clear_type();
  const auto any = ReadOnnx(builder.Bytes(), options);
  ASSERT_THAT(any, IsOk());
  EXPECT_EQ(any->values[static_cast<size_t>(any->inputs[0])].shape, (Shape{-1, 2, 4, 4}));
  EXPECT_EQ(any->outputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(any->outputs[0].shape, (Shape{-1, 5}));
}

TEST(OnnxReaderTest, WhatTheFileDeclaresCountsBeforeWhatIsKnown) {
  OnnxBuilder builder = SmallModel();
  ReadOptions options;
  options.ports["x"] = {DType::kInt64, Shape{7}};
  const auto graph = ReadOnnx(builder.Bytes(), options);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->ShapeOf(graph->inputs[0]), (Shape{-1, 2, 4, 4}));
}

TEST(OnnxReaderTest, TakesInitializersThatAreInputsToo) {
  OnnxBuilder builder = SmallModel();
  builder.Input("w", {3, 2, 3, 3}).Input("b", {3});
  const auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->inputs.size(), 1u);
}

TEST(OnnxReaderTest, ReadsFreeDimensionsInEverySpelling) {
  for (int spelling = 0; spelling < 3; ++spelling) {
    OnnxBuilder builder = SmallModel();
    auto& batch =
        *builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
    batch.clear_value();
    if (spelling == 0) batch.set_dim_param("N");
    if (spelling == 1) batch.set_dim_value(-1);
    const auto graph = builder.Read();
    ASSERT_THAT(graph, IsOk());
    EXPECT_EQ(graph->ShapeOf(graph->inputs[0])[0], kFreeBatch);
  }
}

// An initializer of each type in the field where ONNX keeps it.
TEST(OnnxReaderTest, ReadsTypedData) {
  using onnx::TensorProto;
  const auto tensor = [](int type, const std::function<void(TensorProto&)>& fill) {
    OnnxBuilder builder = SmallModel();
    TensorProto& proto = *builder.graph().add_initializer();
    proto.set_name("typed");
    proto.set_data_type(type);
    proto.add_dims(2);
    fill(proto);
    auto graph = builder.Read();
    EXPECT_THAT(graph, IsOk());
    for (Value& value : graph->values) {
      if (value.name == "typed") return *value.constant;
    }
    return Tensor();
  };
  const auto bytes_of = []<typename T>(std::initializer_list<T> values) {
    const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto int32s = [](TensorProto& proto) {
    proto.add_int32_data(1);
    proto.add_int32_data(2);
  };
  const auto uint64s = [](TensorProto& proto) {
    proto.add_uint64_data(1);
    proto.add_uint64_data(2);
  };
  EXPECT_EQ(tensor(TensorProto::FLOAT,
                   [](TensorProto& p) {
                     p.add_float_data(1);
                     p.add_float_data(2);
                   })
                .bytes,
            bytes_of({1.0f, 2.0f}));
  EXPECT_EQ(tensor(TensorProto::DOUBLE,
                   [](TensorProto& p) {
                     p.add_double_data(1);
                     p.add_double_data(2);
                   })
                .bytes,
            bytes_of({1.0, 2.0}));
  EXPECT_EQ(tensor(TensorProto::INT64,
                   [](TensorProto& p) {
                     p.add_int64_data(1);
                     p.add_int64_data(2);
                   })
                .bytes,
            bytes_of({int64_t{1}, int64_t{2}}));
  EXPECT_EQ(tensor(TensorProto::UINT64, uint64s).bytes, bytes_of({uint64_t{1}, uint64_t{2}}));
  EXPECT_EQ(tensor(TensorProto::UINT32, uint64s).bytes, bytes_of({uint32_t{1}, uint32_t{2}}));
  EXPECT_EQ(tensor(TensorProto::INT32, int32s).bytes, bytes_of({int32_t{1}, int32_t{2}}));
  EXPECT_EQ(tensor(TensorProto::INT8, int32s).bytes, bytes_of({int8_t{1}, int8_t{2}}));
  EXPECT_EQ(tensor(TensorProto::BOOL, int32s).dtype, DType::kBool);
  EXPECT_EQ(tensor(TensorProto::FLOAT16, int32s).bytes, bytes_of({uint16_t{1}, uint16_t{2}}));
}

struct Fault {
  const char* name;
  std::function<void(OnnxBuilder&)> make;
  StatusCode code;
  const char* message;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class OnnxFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(OnnxFaultTest, IsRefused) {
  OnnxBuilder builder = SmallModel();
  GetParam().make(builder);
  EXPECT_THAT(builder.Read(), IsError(GetParam().code, GetParam().message));
}

onnx::TensorProto& Weight(OnnxBuilder& builder) { return *builder.graph().mutable_initializer(0); }
onnx::NodeProto& Conv(OnnxBuilder& builder) { return *builder.graph().mutable_node(0); }
onnx::TypeProto::Tensor& InputType(OnnxBuilder& builder) {
  return *builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type();
}

const Fault kFaults[] = {
    {"NoGraph", [](OnnxBuilder& b) { b.model().clear_graph(); }, kInvalid, "has no graph"},
    {"NoIrVersion", [](OnnxBuilder& b) { b.model().clear_ir_version(); }, kInvalid, "no IR version"},
    {"NoOpset", [](OnnxBuilder& b) { b.model().clear_opset_import(); }, kInvalid, "no default operator set"},
    {"ProducerNotUtf8", [](OnnxBuilder& b) { b.model().set_producer_name("\xff"); }, kInvalid, "producer"},
    {"UnknownOperator", [](OnnxBuilder& b) { Conv(b).set_op_type("Einsum"); }, kUnsupported,
     "operator Einsum (opset 17, node 'c_node') is not supported"},
    {"OtherDomain", [](OnnxBuilder& b) { Conv(b).set_domain("com.microsoft"); }, kUnsupported,
     "operator com.microsoft.Conv (opset 17, node 'c_node') is not supported"},
    {"OneProcessorsDomain", [](OnnxBuilder& b) { Conv(b).set_domain("com.microsoft.nchwc"); }, kUnsupported,
     "operator com.microsoft.nchwc.Conv (opset 17, node 'c_node') is not supported: its weights are laid out for one"},
    {"Segment", [](OnnxBuilder& b) { Weight(b).mutable_segment()->set_begin(0); }, kUnsupported, "segments"},
    {"ShortData", [](OnnxBuilder& b) { Weight(b).mutable_raw_data()->pop_back(); }, kInvalid,
     "initializer 'w' has 215 bytes of data, but 216"},
    {"LongData", [](OnnxBuilder& b) { Weight(b).mutable_raw_data()->push_back(0); }, kInvalid, "217 bytes"},
    {"NoData", [](OnnxBuilder& b) { Weight(b).clear_raw_data(); }, kInvalid, "0 elements of data, but 54"},
    {"BothData", [](OnnxBuilder& b) { Weight(b).add_float_data(1); }, kInvalid, "both raw and typed"},
    {"TypedDataOfOtherType",
     [](OnnxBuilder& b) {
       Weight(b).clear_raw_data();
       Weight(b).add_int64_data(1);
     },
     kInvalid, "0 elements of data"},
    {"NegativeDimension", [](OnnxBuilder& b) { Weight(b).set_dims(0, -3); }, kInvalid, "initializer 'w'"},
    {"OverflowingDimensions",
     [](OnnxBuilder& b) {
       Weight(b).set_dims(0, std::numeric_limits<int64_t>::max());
       Weight(b).set_dims(1, std::numeric_limits<int64_t>::max());
     },
     kInvalid, "initializer 'w'"},
    {"HugeDimensions", [](OnnxBuilder& b) { Weight(b).set_dims(0, int64_t{1} << 40); }, kInvalid, "the limit is"},
    {"UnknownType", [](OnnxBuilder& b) { Weight(b).set_data_type(77); }, kUnsupported, "data type 77"},
    {"StringType", [](OnnxBuilder& b) { Weight(b).set_data_type(onnx::TensorProto::STRING); }, kUnsupported,
     "data type 8"},
    {"InitializerTwice", [](OnnxBuilder& b) { *b.graph().add_initializer() = Weight(b); }, kInvalid,
     "'w' is defined twice"},
    {"InitializerUnnamed", [](OnnxBuilder& b) { Weight(b).clear_name(); }, kInvalid, "has no name"},
    {"InitializerNameNotUtf8", [](OnnxBuilder& b) { Weight(b).set_name("\xc0\x80"); }, kInvalid,
     "an initializer has a name that is not printable UTF-8"},
    {"NodeNameWithControl", [](OnnxBuilder& b) { Conv(b).set_name("a\nb"); }, kInvalid, "node 0 has a name"},
    {"NameTooLong", [](OnnxBuilder& b) { Conv(b).set_name(std::string(2000, 'x')); }, kInvalid, "2000 bytes"},
    {"NoInputs", [](OnnxBuilder& b) { b.graph().clear_input(); }, kInvalid, "the graph has no inputs"},
    {"NoOutputs", [](OnnxBuilder& b) { b.graph().clear_output(); }, kInvalid, "the graph has no outputs"},
    {"InputTwice", [](OnnxBuilder& b) { *b.graph().add_input() = b.graph().input(0); }, kInvalid, "defined twice"},
    {"InputUntyped", [](OnnxBuilder& b) { b.graph().mutable_input(0)->clear_type(); }, kInvalid, "no tensor type"},
    {"InputWithoutShape", [](OnnxBuilder& b) { InputType(b).clear_shape(); }, kInvalid, "no tensor type with a shape"},
    {"InputScalar", [](OnnxBuilder& b) { InputType(b).mutable_shape()->clear_dim(); }, kUnsupported, "scalar"},
    {"InputOfIntegers", [](OnnxBuilder& b) { InputType(b).set_elem_type(onnx::TensorProto::INT64); }, kUnsupported,
     "graph input 'x' is INT64"},
    {"InputWithFreeHeight", [](OnnxBuilder& b) { InputType(b).mutable_shape()->mutable_dim(2)->set_dim_param("H"); },
     kUnsupported, "graph input 'x': dimension 2 is free"},
    {"InputWithZero", [](OnnxBuilder& b) { InputType(b).mutable_shape()->mutable_dim(1)->set_dim_value(0); }, kInvalid,
     "dimension 0"},
    {"UndefinedInput", [](OnnxBuilder& b) { Conv(b).set_input(0, "nowhere"); }, kInvalid,
     "Conv node 'c_node' reads 'nowhere'"},
    {"Cycle", [](OnnxBuilder& b) { Conv(b).set_input(0, "y"); }, kInvalid, "in a cycle"},
    {"OutputTwice", [](OnnxBuilder& b) { b.graph().mutable_node(1)->set_output(0, "c"); }, kInvalid,
     "'c' is defined twice"},
    {"OutputOverInitializer", [](OnnxBuilder& b) { Conv(b).set_output(0, "w"); }, kInvalid, "'w' is defined twice"},
    {"GraphOutputUndefined", [](OnnxBuilder& b) { b.Output("nowhere"); }, kInvalid, "graph output 'nowhere'"},
    {"GraphOutputTwice", [](OnnxBuilder& b) { b.Output("y"); }, kInvalid, "'y' is listed twice"},
    {"TooManyInputs", [](OnnxBuilder& b) { Conv(b).add_input("b"); }, kInvalid, "Conv node 'c_node' has 4 inputs"},
    {"TooFewInputs", [](OnnxBuilder& b) { Conv(b).clear_input(); }, kInvalid, "has 0 inputs"},
    {"NeededInputLeftOut", [](OnnxBuilder& b) { Conv(b).set_input(0, ""); }, kInvalid, "lacks its input 0"},
    {"NoNodeOutput", [](OnnxBuilder& b) { Conv(b).clear_output(); }, kInvalid, "reads 'c'"},
    {"UnknownAttribute", [](OnnxBuilder& b) { Conv(b).mutable_attribute(0)->set_name("kernels"); }, kInvalid,
     "Conv node 'c_node': attribute 'kernels' is not known"},
    {"AttributeOfOlderOpsets",
     [](OnnxBuilder& b) {
       b.Node("Clip", {"c"}, {"d"}, {{"min", 0.0f}});
     },
     kInvalid, "Clip node 'd_node': attribute 'min' is not known in opset 17"},
    {"AttributeTwice", [](OnnxBuilder& b) { *Conv(b).add_attribute() = Conv(b).attribute(0); }, kInvalid,
     "given twice"},
    {"AttributeUntyped", [](OnnxBuilder& b) { Conv(b).mutable_attribute(0)->clear_type(); }, kUnsupported,
     "attribute type 0"},
    {"AttributeOfFunction", [](OnnxBuilder& b) { Conv(b).mutable_attribute(0)->set_ref_attr_name("k"); }, kUnsupported,
     "function's attribute"},
    {"AttributeGraph",
     [](OnnxBuilder& b) {
       Conv(b).mutable_attribute(0)->set_type(onnx::AttributeProto::GRAPH);
       Conv(b).mutable_attribute(0)->mutable_g()->set_name("inner");
     },
     kUnsupported, "attribute type 5"},
};

INSTANTIATE_TEST_SUITE_P(Faults, OnnxFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST(OnnxReaderTest, KeepsLimits) {
  const std::vector<std::byte> bytes = SmallModel().Bytes();
  ReadOptions small_model, small_tensor, few_nodes, no_outputs;
  small_model.max_model_bytes = static_cast<int64_t>(bytes.size()) - 1;
  small_tensor.max_tensor_bytes = 215;
  few_nodes.max_nodes = 3;
  no_outputs.max_outputs = 0;
  EXPECT_THAT(ReadOnnx(bytes, small_model), IsError(kInvalid, "the limit is"));
  EXPECT_THAT(ReadOnnx(bytes, small_tensor), IsError(kInvalid, "the limit is 215 bytes"));
  EXPECT_THAT(ReadOnnx(bytes, few_nodes), IsError(kInvalid, "the limit is 3"));
  EXPECT_THAT(ReadOnnx(bytes, no_outputs), IsError(kInvalid, "has 1 outputs; the limit is 0"));
}

TEST(OnnxReaderTest, SaysThatGraphsAreNestedTooDeep) {
  const auto read = [](int deep) {
    OnnxBuilder builder = SmallModel();
    onnx::GraphProto* graph = &builder.graph();
    for (int depth = 0; depth < deep; ++depth) {
      onnx::NodeProto& node = *graph->add_node();
      node.set_op_type("If");
      graph = node.add_attribute()->mutable_g();
    }
    return builder.Read();
  };
  EXPECT_THAT(read(10), IsError(StatusCode::kUnimplemented, "operator If")) << "which no plan takes";
  EXPECT_THAT(read(100), IsError(StatusCode::kUnimplemented, "deeper than 64 nodes"));
  EXPECT_THAT(read(2000), IsError(kInvalid, "does not parse"));
}

TEST(OnnxReaderTest, AMatrixOfWholeNumbersIsOneOfSequences) {
  const auto sequences = [](const Shape& ids, const Shape& mask) {
    OnnxBuilder builder;
    builder.Int64Input("ids", ids).Int64Input("mask", mask).Node("Erf", {"ids"}, {"y"}).Output("y");
    return builder.Read();
  };
  const auto free = sequences({-1, -1}, {-1, -1});
  ASSERT_THAT(free, IsOk());
  ASSERT_TRUE(free->sequences);
  EXPECT_EQ(free->sequences->batch, kFreeBatch);
  EXPECT_EQ(free->sequences->length, kFreeBatch);
  const auto fixed = sequences({-1, 8}, {2, -1});
  ASSERT_THAT(fixed, IsOk());
  EXPECT_EQ(fixed->sequences->batch, 2);
  EXPECT_EQ(fixed->sequences->length, 8);
  EXPECT_THAT(sequences({2, 8}, {2, 9}), IsError(StatusCode::kUnimplemented, "all inputs have the same shape"));
  EXPECT_THAT(sequences({2, 8}, {2, 8, 8}), IsError(StatusCode::kUnimplemented, "'mask' is INT64[2,8,8]"));
  EXPECT_THAT(sequences({2, 0}, {2, 0}), IsError(StatusCode::kInvalidArgument, "'ids' has dimension 0"));
  OnnxBuilder mixed;
  mixed.Int64Input("ids", {-1, -1}).Input("x", {-1, 2}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(mixed.Read(), IsError(StatusCode::kUnimplemented, "'x' is FP32[-1,2]; in a model of token sequences"));
  OnnxBuilder fused;
  fused.Int64Input("ids", {-1, -1}).MicrosoftNode("QuickGelu", {"ids"}, {"y"}).Output("y");
  EXPECT_THAT(fused.Read(), IsOk());
  fused.MicrosoftNode("LongformerAttention", {"y"}, {"z"});
  EXPECT_THAT(fused.Read(),
              IsError(StatusCode::kUnimplemented, "operator com.microsoft.LongformerAttention (opset 17"));
}

// Beside an input of its name, and where it is asked for; else it is a constant, as exporters mean it.
TEST(OnnxReaderTest, InitializersOfOptionalInputsAreDefaults) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Input("b", {-1, 2}).Floats("b", {1, 2}, {3, 4}).Floats("c", {1, 2}, {5, 6});
  builder.Node("Add", {"x", "b"}, {"s"}).Node("Mul", {"s", "c"}, {"y"}).Output("y");
  const std::vector<std::byte> bytes = builder.Bytes();
  ReadOptions options;
  for (const char* name : {"b", "c"}) options.ports[name].is_optional = true;
  const auto constants = ReadOnnx(bytes, options);
  ASSERT_THAT(constants, IsOk());
  EXPECT_EQ(constants->inputs.size(), 1u);
  options.defaults = std::make_shared<InputDefaults>();
  const auto graph = ReadOnnx(bytes, options);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->inputs.size(), 2u);
  ASSERT_EQ(options.defaults->size(), 1u);
  EXPECT_EQ(options.defaults->at("b"), Tensor::Floats({1, 2}, std::vector<float>{3, 4}));
}

TEST(OnnxReaderTest, RefusesGarbage) {
  const auto read = [](const std::string& text) { return ReadOnnx(std::as_bytes(std::span(text))); };
  EXPECT_THAT(read(""), IsError(kInvalid, "not an ONNX model"));
  EXPECT_THAT(read("This is no model at all, it is a sentence."), IsError(kInvalid, "not an ONNX model"));
  EXPECT_THAT(read(std::string(1000, '\0')), IsError(kInvalid, "not an ONNX model"));
  EXPECT_THAT(read("\x89SWZ\r\n\x1a\n and what follows"), IsError(kInvalid, "a packed model, not an ONNX one"));
}

// Not one byte may be missing: what follows the graph is the operator set.
TEST(OnnxReaderTest, RefusesEveryTruncation) {
  const std::vector<std::byte> bytes = SmallModel().Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THAT(LoadAll(std::span(bytes).first(length)), ::testing::Not(IsOk())) << length << " of " << bytes.size();
  }
  EXPECT_THAT(LoadAll(bytes), IsOk());
}

// Whatever the flip makes of the model, it loads or is refused; sanitizers watch.
TEST(OnnxReaderTest, SurvivesFlippedBits) {
  const std::vector<std::byte> bytes = SmallModel().Bytes();
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; bit += 3) {
      std::vector<std::byte> flipped = bytes;
      flipped[i] ^= std::byte{1} << bit;
      const auto network = LoadAll(flipped);
      if (!network.ok()) {
        ++refused;
        EXPECT_FALSE(network.status().message().empty());
        EXPECT_NE(network.status().code(), StatusCode::kInternal) << network.status();
      }
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace swizzle
