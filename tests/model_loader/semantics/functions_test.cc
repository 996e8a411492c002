#include "model_loader/semantics/functions.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;

TEST(FunctionsTest, AttributesSayWhichFunctionItIs) {
  for (int kind = 0; kind < kFunctionKindCount; ++kind) {
    const Function function{static_cast<FunctionKind>(kind), 0.25f, 0.75f};
    const Node node{"Function", "swizzle", "node", {}, {}, FunctionAttributes(function)};
    const Function read = FunctionOf(node);
    EXPECT_EQ(read.kind, function.kind);
    EXPECT_EQ(read.alpha, 0.25f);
    EXPECT_EQ(read.beta, 0.75f);
    EXPECT_EQ(node.attributes.at("function"), Attribute(std::string(FunctionKindName(function.kind))));
  }
}

TEST(FunctionsTest, OfGeluThereAreTwo) {
  const auto kind = [](const std::map<std::string, Attribute>& attributes) {
    return GeluKindOf({"Gelu", "", "node", {}, {}, attributes});
  };
  EXPECT_EQ(*kind({}), FunctionKind::kGelu);
  EXPECT_EQ(*kind({{"approximate", "none"}}), FunctionKind::kGelu);
  EXPECT_EQ(*kind({{"approximate", "tanh"}}), FunctionKind::kGeluTanh);
  EXPECT_THAT(kind({{"approximate", "erf"}}).status(), IsError(StatusCode::kInvalidArgument, "neither 'none' nor"));
}

}  // namespace
}  // namespace swizzle
