#include "model_loader/semantics/evaluate.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;
using AttributeMap = std::map<std::string, Attribute>;
using Ints = std::vector<int64_t>;

Elements Whole(const Shape& shape, const Ints& values) {
  Elements elements{DType::kInt64, shape, {}};
  for (int64_t value : values) elements.scalars.push_back({0.0, value, false});
  return elements;
}

Elements List(const Ints& values) { return Whole({static_cast<int64_t>(values.size())}, values); }

Elements Reals(const Shape& shape, const std::vector<double>& values) {
  Elements elements{DType::kFloat32, shape, {}};
  for (double value : values) elements.scalars.push_back({value, 0, false});
  return elements;
}

// [batch * factor, 3]
Elements BatchAndThree(int64_t factor = 1) {
  Elements elements = List({factor, 3});
  elements.scalars[0].times_batch = true;
  return elements;
}

StatusOr<std::optional<Elements>> Compute(const std::string& op, const std::vector<Elements>& inputs,
                                          const AttributeMap& attributes = {}) {
  std::vector<const Elements*> pointers;
  for (const Elements& input : inputs) pointers.push_back(&input);
  return Evaluate(Node{op, "", "node", {}, {}, attributes}, pointers);
}

// "[shape] elements", b for multiples of the batch; "unknown" or the error otherwise.
std::string Text(const StatusOr<std::optional<Elements>>& result) {
  if (!result.ok()) return std::string(result.status().message());
  if (!result->has_value()) return "unknown";
  std::string text = ShapeText((*result)->shape);
  for (const Scalar& scalar : (*result)->scalars) {
    const bool real = IsFloating((*result)->dtype);
    text += real ? Concat(" ", scalar.real) : Concat(" ", scalar.whole, scalar.times_batch ? "b" : "");
  }
  return text;
}

TEST(EvaluateTest, Shape) {
  const auto shape = [](const AttributeMap& attributes) {
    return Text(*EvaluateShape(Node{"Shape", "", "node", {}, {}, attributes}, {kFreeBatch, 3, 8, 9}));
  };
  EXPECT_EQ(shape({}), "[4] 1b 3 8 9");
  EXPECT_EQ(shape({{"start", int64_t{1}}}), "[3] 3 8 9");
  EXPECT_EQ(shape({{"start", int64_t{-3}}, {"end", int64_t{-1}}}), "[2] 3 8");
  EXPECT_EQ(shape({{"start", int64_t{3}}, {"end", int64_t{1}}}), "[0]");
}

TEST(EvaluateTest, Gather) {
  EXPECT_EQ(Text(Compute("Gather", {BatchAndThree(), Whole({}, {0})})), "[] 1b");
  EXPECT_EQ(Text(Compute("Gather", {List({5, 6, 7}), List({-1, 0})})), "[2] 7 5");
  EXPECT_EQ(Text(Compute("Gather", {Whole({2, 2}, {1, 2, 3, 4}), List({1})}, {{"axis", int64_t{1}}})), "[2,1] 2 4");
  EXPECT_THAT(Text(Compute("Gather", {List({5}), List({1})})), HasSubstr("index 1 is out of range for 1"));
  EXPECT_THAT(Text(Compute("Gather", {List({5}), List({0})}, {{"axis", int64_t{1}}})), HasSubstr("axis 1"));
  EXPECT_THAT(Text(Compute("Gather", {List({5}), BatchAndThree()})), HasSubstr("indices"));
}

TEST(EvaluateTest, Concat) {
  EXPECT_EQ(Text(Compute("Concat", {BatchAndThree(), List({4})}, {{"axis", int64_t{0}}})), "[3] 1b 3 4");
  EXPECT_EQ(Text(Compute("Concat", {Whole({2, 1}, {1, 2}), Whole({2, 2}, {3, 4, 5, 6})}, {{"axis", int64_t{-1}}})),
            "[2,3] 1 3 4 2 5 6");
  EXPECT_THAT(Text(Compute("Concat", {List({4})})), HasSubstr("is not one of 1 dimensions"));
  EXPECT_THAT(Text(Compute("Concat", {List({1}), Whole({1, 1}, {1})}, {{"axis", int64_t{0}}})), HasSubstr("rank"));
  EXPECT_THAT(Text(Compute("Concat", {Whole({1, 1}, {1}), Whole({2, 1}, {1, 2})}, {{"axis", int64_t{1}}})),
              HasSubstr("differ in shape"));
}

TEST(EvaluateTest, Slice) {
  const Elements data = List({0, 1, 2, 3, 4});
  EXPECT_EQ(Text(Compute("Slice", {data, List({1}), List({3})})), "[2] 1 2");
  EXPECT_EQ(Text(Compute("Slice", {data, List({-2}), List({std::numeric_limits<int64_t>::max()})})), "[2] 3 4");
  EXPECT_EQ(Text(Compute("Slice", {data, List({-99}), List({99}), List({0}), List({2})})), "[3] 0 2 4");
  EXPECT_EQ(Text(Compute("Slice", {data, List({99}), List({-99}), List({0}), List({-2})})), "[3] 4 2 0");
  EXPECT_EQ(Text(Compute("Slice", {data, List({3}), List({1}), List({0}), List({-1})})), "[2] 3 2");
  EXPECT_EQ(Text(Compute("Slice", {data, List({3}), List({1})})), "[0]");
  EXPECT_EQ(Text(Compute("Slice", {List({}), List({0}), List({1}), List({0}), List({-1})})), "[0]");
  EXPECT_EQ(Text(Compute("Slice", {Whole({2, 3}, {1, 2, 3, 4, 5, 6}), List({1}), List({3}), List({1})})),
            "[2,2] 2 3 5 6");
  EXPECT_THAT(Text(Compute("Slice", {data, List({1}), List({3}), List({0}), List({0})})), HasSubstr("has step 0"));
  EXPECT_THAT(Text(Compute("Slice", {data, List({1}), List({3, 4})})), HasSubstr("differ in length"));
  EXPECT_THAT(Text(Compute("Slice", {data, List({1, 1}), List({2, 2}), List({0, 0})})), HasSubstr("given twice"));
  EXPECT_THAT(Text(Compute("Slice", {data, List({1}), List({3}), List({1})})), HasSubstr("axis 1"));
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Text(Compute("Slice", {data, List({kMost}), List({kLeast}), List({0}), List({kLeast})})), "[1] 4");
  EXPECT_EQ(Text(Compute("Slice", {data, List({kLeast}), List({kMost}), List({0}), List({kMost})})), "[1] 0");
}

// Strides of what has no elements may not fit in 64 bits.
TEST(EvaluateTest, LeavesEmptyInputsOfHugeExtentsAlone) {
  const Elements empty = Whole({0, int64_t{1} << 40, int64_t{1} << 40}, {});
  EXPECT_EQ(Text(Compute("Transpose", {empty})), "unknown");
  EXPECT_EQ(Text(Compute("Slice", {empty, List({0}), List({1})})), "unknown");
  EXPECT_EQ(Text(Compute("Gather", {empty, List({0})}, {{"axis", int64_t{2}}})), "unknown");
}

TEST(EvaluateTest, SqueezeAndUnsqueeze) {
  const Elements data = Whole({1, 2, 1}, {7, 8});
  EXPECT_EQ(Text(Compute("Squeeze", {data})), "[2] 7 8");
  EXPECT_EQ(Text(Compute("Squeeze", {data, List({-1})})), "[1,2] 7 8");
  EXPECT_EQ(Text(Compute("Squeeze", {data}, {{"axes", Ints{0}}})), "[2,1] 7 8");
  EXPECT_THAT(Text(Compute("Squeeze", {data, List({1})})), HasSubstr("dimension 1 is to be squeezed and is not 1"));
  EXPECT_THAT(Text(Compute("Squeeze", {data, List({0, -3})})), HasSubstr("given twice"));
  EXPECT_EQ(Text(Compute("Unsqueeze", {Whole({}, {7}), List({0})})), "[1] 7");
  EXPECT_EQ(Text(Compute("Unsqueeze", {List({7, 8})}, {{"axes", Ints{-1, 0}}})), "[1,2,1] 7 8");
  EXPECT_THAT(Text(Compute("Unsqueeze", {List({7})})), HasSubstr("no axes"));
  EXPECT_THAT(Text(Compute("Unsqueeze", {List({7}), List({2})})), HasSubstr("axis 2"));
  EXPECT_THAT(Text(Compute("Unsqueeze", {Whole({}, {7}), List({2})}, {{"axes", Ints{0, 1, 2}}})), HasSubstr("axis 2"));
}

TEST(EvaluateTest, ReshapeAndTranspose) {
  const Elements data = Whole({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(Text(Compute("Reshape", {data, List({-1})})), "[6] 1 2 3 4 5 6");
  EXPECT_EQ(Text(Compute("Reshape", {data, List({0, 1, -1})})), "[2,1,3] 1 2 3 4 5 6");
  EXPECT_THAT(Text(Compute("Reshape", {data, List({4})})), HasSubstr("[2,3] cannot become [4]"));
  EXPECT_THAT(Text(Compute("Reshape", {data, List({-1, -1})})), HasSubstr("cannot become [-1,-1]"));
  EXPECT_THAT(Text(Compute("Reshape", {data, List({int64_t{1} << 40})})), HasSubstr("cannot become"));
  EXPECT_EQ(Text(Compute("Transpose", {data})), "[3,2] 1 4 2 5 3 6");
  EXPECT_EQ(Text(Compute("Transpose", {data}, {{"perm", Ints{0, 1}}})), "[2,3] 1 2 3 4 5 6");
  EXPECT_THAT(Text(Compute("Transpose", {data}, {{"perm", Ints{0, 0}}})), HasSubstr("not a permutation"));
}

TEST(EvaluateTest, ConstantOfShape) {
  const Tensor seven = Tensor::Int64s({1}, Ints{7});
  EXPECT_EQ(Text(Compute("ConstantOfShape", {List({2, 1})}, {{"value", seven}})), "[2,1] 7 7");
  EXPECT_EQ(Text(Compute("ConstantOfShape", {List({2})})), "[2] 0 0");
  EXPECT_EQ(Text(Compute("ConstantOfShape", {List({})}, {{"value", seven}})), "[] 7");
  EXPECT_EQ(Text(Compute("ConstantOfShape", {BatchAndThree()})), "unknown");
  EXPECT_EQ(Text(Compute("ConstantOfShape", {List({1 << 30})})), "unknown") << "too many elements";
  EXPECT_THAT(Text(Compute("ConstantOfShape", {List({-1})})), HasSubstr("-1"));
  EXPECT_THAT(Text(Compute("ConstantOfShape", {List({1})}, {{"value", Tensor::Int64s({2}, Ints{1, 2})}})),
              HasSubstr("one element"));
}

TEST(EvaluateTest, Cast) {
  const auto cast = [](const Elements& data, int64_t to) { return Text(Compute("Cast", {data}, {{"to", to}})); };
  EXPECT_EQ(cast(List({3}), 1), "[1] 3");
  EXPECT_EQ(cast(Reals({2}, {-2.75, 2.75}), 7), "[2] -2 2") << "towards zero";
  EXPECT_EQ(cast(List({300}), 2), "[1] 44") << "uint8 wraps";
  EXPECT_EQ(cast(List({300}), 9), "[1] 1") << "bool";
  EXPECT_EQ(cast(BatchAndThree(), 7), "[2] 1b 3");
  EXPECT_EQ(cast(BatchAndThree(), 1), "unknown");
  EXPECT_EQ(cast(Reals({1}, {1e300}), 7), "unknown");
  EXPECT_EQ(cast(List({3}), 8), "unknown") << "string";
}

TEST(EvaluateTest, Arithmetic) {
  EXPECT_EQ(Text(Compute("Mul", {Whole({2, 1}, {2, 3}), List({5, 7})})), "[2,2] 10 14 15 21");
  EXPECT_EQ(Text(Compute("Sub", {Whole({}, {2}), List({5, 7})})), "[2] -3 -5");
  EXPECT_EQ(Text(Compute("Div", {List({-7}), List({2})})), "[1] -3");
  EXPECT_EQ(Text(Compute("Div", {Reals({1}, {1.0}), Reals({1}, {4.0})})), "[1] 0.25");
  EXPECT_EQ(Text(Compute("Div", {List({7}), List({0})})), "unknown");
  EXPECT_EQ(Text(Compute("Add", {List({std::numeric_limits<int64_t>::max()}), List({1})})), "unknown");
  EXPECT_EQ(Text(Compute("Div", {List({std::numeric_limits<int64_t>::min()}), List({-1})})), "unknown");
  EXPECT_THAT(Text(Compute("Add", {List({1}), Reals({1}, {1.0})})), HasSubstr("differ in type"));
  EXPECT_THAT(Text(Compute("Add", {List({1, 2}), List({1, 2, 3})})), HasSubstr("do not broadcast"));
}

TEST(EvaluateTest, ArithmeticWithTheBatch) {
  EXPECT_EQ(Text(Compute("Mul", {BatchAndThree(), List({4})})), "[2] 4b 12");
  EXPECT_EQ(Text(Compute("Div", {BatchAndThree(6), List({3})})), "[2] 2b 1");
  EXPECT_EQ(Text(Compute("Add", {BatchAndThree(), BatchAndThree()})), "[2] 2b 6");
  EXPECT_EQ(Text(Compute("Div", {BatchAndThree(), List({2})})), "unknown") << "the batch may be odd";
  EXPECT_EQ(Text(Compute("Mul", {BatchAndThree(), BatchAndThree()})), "unknown");
  EXPECT_EQ(Text(Compute("Add", {BatchAndThree(), List({1})})), "unknown");
  EXPECT_EQ(Text(Compute("Div", {List({6, 6}), BatchAndThree()})), "unknown");
}

TEST(ElementsTest, RoundTripsThroughTensors) {
  const Tensor whole = Tensor::Int64s({2}, Ints{-5, 1});
  EXPECT_EQ(Elements::FromTensor(whole)->ToTensor(), whole);
  const Tensor real = Tensor::Floats({1, 2}, std::vector<float>{0.1f, -2});
  EXPECT_EQ(Elements::FromTensor(real)->ToTensor(), real);
  const Tensor byte{DType::kInt8, {1}, {std::byte{0xFF}}};
  EXPECT_EQ(Elements::FromTensor(byte)->scalars[0].whole, -1);
  EXPECT_EQ(Elements::FromTensor(byte)->ToTensor(), byte);
  const Tensor half{DType::kFloat16, {1}, std::vector<std::byte>(2)};
  EXPECT_FALSE(Elements::FromTensor(half).has_value());
  EXPECT_FALSE(IsFoldable(DType::kFloat16));
}

}  // namespace
}  // namespace swizzle
