#include "model_loader/semantics/functions.h"

#include "gtest/gtest.h"

namespace swizzle {
namespace {

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

}  // namespace
}  // namespace swizzle
