#include "model_loader/onnx/sparse_tensor.h"

#include <functional>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/graph/print.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using onnx::SparseTensorProto;
using onnx::TensorProto;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using testing::OnnxBuilder;

void SetInt64s(TensorProto& proto, const Shape& shape, const std::vector<int64_t>& values) {
  proto.set_data_type(TensorProto::INT64);
  proto.mutable_dims()->Assign(shape.begin(), shape.end());
  proto.set_raw_data(values.data(), values.size() * sizeof(int64_t));
}

// The example of the header, as the weight 'w' of a Gemm.
OnnxBuilder Example(const std::function<void(SparseTensorProto&)>& change = [](SparseTensorProto&) {}) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3}).Sparse("w", {3, 4}, {5, 6, 7}, {1, 4, 11});
  builder.Node("Gemm", {"x", "w"}, {"y"}).Output("y");
  change(*builder.graph().mutable_sparse_initializer(0));
  return builder;
}

void UseAxes(SparseTensorProto& proto) { SetInt64s(*proto.mutable_indices(), {3, 2}, {0, 1, 1, 0, 2, 3}); }

const std::vector<float> kDense = {0, 5, 0, 0, 6, 0, 0, 0, 0, 0, 0, 7};

TEST(SparseTensorTest, BecomesWhatADenseInitializerWouldHave) {
  OnnxBuilder dense;
  dense.Input("x", {-1, 3}).Floats("w", {3, 4}, kDense).Node("Gemm", {"x", "w"}, {"y"}).Output("y");
  const auto expected = dense.Read(), linear = Example().Read(), by_axis = Example(UseAxes).Read();
  ASSERT_THAT(expected, IsOk());
  for (const auto* graph : {&linear, &by_axis}) {
    ASSERT_THAT(*graph, IsOk());
    EXPECT_EQ(Print(**graph), Print(*expected));
    EXPECT_EQ((*graph)->values[0].constant, expected->values[0].constant);
  }
}

TEST(SparseTensorTest, TakesTypedData) {
  const auto graph = Example([](SparseTensorProto& proto) {
                       proto.mutable_values()->clear_raw_data();
                       for (float value : {5.0f, 6.0f, 7.0f}) proto.mutable_values()->add_float_data(value);
                       proto.mutable_indices()->clear_raw_data();
                       for (int64_t index : {1, 4, 11}) proto.mutable_indices()->add_int64_data(index);
                     }).Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->values[0].constant, Tensor::Floats({3, 4}, kDense));
}

TEST(SparseTensorTest, TakesOtherTypesAndNoValues) {
  const auto integers = Example([](SparseTensorProto& proto) { SetInt64s(*proto.mutable_values(), {3}, {-1, 2, 3}); });
  const auto graph = integers.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->values[0].constant,
            Tensor::Int64s({3, 4}, std::vector<int64_t>{0, -1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3}));
  for (const Shape& none : {Shape{0}, Shape{0, 2}}) {
    const auto zeros = Example([&](SparseTensorProto& proto) {
                         proto.mutable_values()->set_dims(0, 0);
                         proto.mutable_values()->set_raw_data("");
                         SetInt64s(*proto.mutable_indices(), none, {});
                       }).Read();
    ASSERT_THAT(zeros, IsOk());
    EXPECT_EQ(zeros->values[0].constant, Tensor::Floats({3, 4}, std::vector<float>(12)));
  }
}

TEST(SparseTensorTest, ListedAmongTheInputsItIsNoInput) {
  OnnxBuilder builder = Example();
  builder.Input("w", {3, 4});
  const auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->inputs.size(), 1u);
}

TEST(SparseTensorTest, KeepsLimitsBeforeItAllocates) {
  OnnxBuilder builder = Example();
  builder.Sparse("v", {100, 100}, {1}, {9999});
  ReadOptions options;
  options.max_sparse_bytes = 48 + 40000;
  EXPECT_THAT(ReadOnnx(builder.Bytes(), options), IsOk());
  options.max_sparse_bytes -= 1;
  EXPECT_THAT(ReadOnnx(builder.Bytes(), options), IsError(kInvalid, "sparse initializer 'v' takes 40000 bytes when"));
  options.max_tensor_bytes = 39999;
  EXPECT_THAT(ReadOnnx(builder.Bytes(), options), IsError(kInvalid, "'v' has 10000 elements of FP32; the limit is"));
}

struct SparseFault {
  const char* name;
  std::function<void(SparseTensorProto&)> make;
  StatusCode code;
  const char* message;
};

void PrintTo(const SparseFault& fault, std::ostream* out) { *out << fault.name; }

class SparseTensorFaultTest : public ::testing::TestWithParam<SparseFault> {};

TEST_P(SparseTensorFaultTest, IsRefused) {
  const SparseFault& fault = GetParam();
  EXPECT_THAT(Example(fault.make).Read(), IsError(fault.code, fault.message));
}

SparseFault Linear(const char* name, const Shape& shape, const std::vector<int64_t>& indices, const char* message) {
  return {name, [=](SparseTensorProto& p) { SetInt64s(*p.mutable_indices(), shape, indices); }, kInvalid, message};
}

const SparseFault kSparseFaults[] = {
    Linear("Descending", {3}, {1, 11, 4}, "sparse initializer 'w': the indices of values 1 and 2 are not in ascending"),
    Linear("Twice", {3}, {1, 4, 4}, "the indices of values 1 and 2"),
    Linear("Negative", {3}, {-1, 4, 11}, "index -1 of value 0 is not within 0 and 11"),
    Linear("PastTheEnd", {3}, {1, 4, 12}, "index 12 of value 2 is not within 0 and 11"),
    Linear("Huge", {3}, {1, 4, std::numeric_limits<int64_t>::max()}, "of value 2 is not within"),
    Linear("TooFew", {2}, {1, 4}, "has 3 values, but indices of shape [2]; they must be [3] or [3,2]"),
    Linear("TooMany", {4}, {1, 4, 5, 6}, "indices of shape [4]"),
    Linear("NoShape", {}, {1}, "indices of shape []"),
    Linear("OtherRank", {3, 1}, {1, 4, 11}, "indices of shape [3,1]"),
    Linear("Transposed", {2, 3}, {0, 1, 2, 1, 0, 3}, "indices of shape [2,3]"),
    Linear("AxesDescending", {3, 2}, {1, 0, 0, 1, 2, 3}, "the indices of values 0 and 1"),
    Linear("AxesTwice", {3, 2}, {0, 1, 0, 1, 2, 3}, "the indices of values 0 and 1"),
    Linear("AxisOutOfRange", {3, 2}, {0, 1, 0, 4, 2, 3}, "index 4 of value 1 is not within 0 and 3"),
    Linear("AxisNegative", {3, 2}, {0, 1, 1, -1, 2, 3}, "index -1 of value 1 is not within 0 and 3"),
    Linear("IndicesShort", {3}, {1, 4}, "sparse initializer 'w': its list of indices has 16 bytes"),
    {"IndicesAbsent", [](SparseTensorProto& p) { p.clear_indices(); }, kInvalid, "they must be INT64"},
    {"IndicesOfInt32", [](SparseTensorProto& p) { p.mutable_indices()->set_data_type(TensorProto::INT32); }, kInvalid,
     "indices of the ONNX data type 6; they must be INT64"},
    {"ValuesAbsent", [](SparseTensorProto& p) { p.clear_values(); }, kUnsupported, "data type 0"},
    {"ValuesOfStrings", [](SparseTensorProto& p) { p.mutable_values()->set_data_type(TensorProto::STRING); },
     kUnsupported, "data type 8"},
    {"ValuesShort", [](SparseTensorProto& p) { p.mutable_values()->mutable_raw_data()->pop_back(); }, kInvalid,
     "sparse initializer 'w': its list of values has 11 bytes"},
    {"ValuesOfTwoDimensions", [](SparseTensorProto& p) { p.mutable_values()->add_dims(1); }, kInvalid,
     "values of shape [3,1]; they must be a list"},
    {"ValuesNegative", [](SparseTensorProto& p) { p.mutable_values()->set_dims(0, -3); }, kInvalid,
     "its list of values"},
    {"Unnamed", [](SparseTensorProto& p) { p.mutable_values()->clear_name(); }, kInvalid, "has no name"},
    {"NameNotPrintable", [](SparseTensorProto& p) { p.mutable_values()->set_name("\n"); }, kInvalid,
     "a sparse initializer has a name"},
    {"NoDimensions", [](SparseTensorProto& p) { p.clear_dims(); }, kInvalid, "has no dimensions"},
    {"NegativeDimension", [](SparseTensorProto& p) { p.set_dims(0, -3); }, kInvalid, "negative"},
    {"NoElements", [](SparseTensorProto& p) { p.set_dims(0, 0); }, kInvalid, "is not within"},
    {"HugeDimension", [](SparseTensorProto& p) { p.set_dims(0, int64_t{1} << 40); }, kInvalid, "the limit is"},
    {"OverflowingDimensions",
     [](SparseTensorProto& p) {
       p.set_dims(0, int64_t{1} << 32);
       p.set_dims(1, int64_t{1} << 32);
     },
     kInvalid, "'w': shape"},
    {"External", [](SparseTensorProto& p) { p.mutable_values()->set_data_location(TensorProto::EXTERNAL); }, kInvalid,
     "its list of values has data both"},
};

INSTANTIATE_TEST_SUITE_P(Faults, SparseTensorFaultTest, ::testing::ValuesIn(kSparseFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST(SparseTensorTest, MayBeTheValueOfAConstant) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3}).Node("Constant", {}, {"w"});
  auto& attribute = *builder.graph().mutable_node(0)->add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *attribute.mutable_sparse_tensor() = Example().graph().sparse_initializer(0);
  builder.Node("Gemm", {"x", "w"}, {"y"}).Output("y");
  const auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(std::get<Tensor>(graph->nodes[0].attributes.at("sparse_value")), Tensor::Floats({3, 4}, kDense));
}

TEST(SparseTensorTest, NamesAreUniqueAmongAllInitializers) {
  OnnxBuilder twice = Example(), dense = Example();
  twice.Sparse("w", {3, 4}, {1}, {0});
  EXPECT_THAT(twice.Read(), IsError(kInvalid, "'w' is defined twice"));
  dense.Counting("w", {3, 4});
  EXPECT_THAT(dense.Read(), IsError(kInvalid, "'w' is defined twice"));
}

TEST(SparseTensorTest, WritesTheNonzerosInTheFormThatTheIndicesHave) {
  const std::vector<float> changed = {0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 3, 4};
  for (const bool axes : {false, true}) {
    SparseTensorProto proto = Example().graph().sparse_initializer(0);
    if (axes) UseAxes(proto);
    WriteSparseTensor(changed, proto);
    EXPECT_EQ(proto.indices().dims_size(), axes ? 2 : 1);
    EXPECT_EQ(proto.values().dims(0), 4);
    TensorSource source((ReadOptions()));
    const auto dense = ReadSparseTensor(proto, "it", source);
    ASSERT_THAT(dense, IsOk());
    EXPECT_EQ(*dense, Tensor::Floats({3, 4}, changed));
  }
}

}  // namespace
}  // namespace swizzle
