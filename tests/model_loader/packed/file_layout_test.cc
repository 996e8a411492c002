#include "model_loader/packed/file_layout.h"

#include <gtest/gtest.h>

#include <cctype>

#include "kernels/base/status.h"

namespace swizzle {
namespace {

// "LAYER_KIND_DEPTHWISE_CONV" of "DepthwiseConv".
std::string SchemaName(std::string_view name) {
  std::string schema_name = "LAYER_KIND";
  for (const char c : name) {
    if (std::isupper(c) != 0) schema_name += '_';
    schema_name += static_cast<char>(std::toupper(c));
  }
  return schema_name;
}

TEST(FileLayoutTest, NamesEveryOperatorOfNetworksAsTheSchema) {
  for (const OpTraits& traits : kOpTraits) {
    SCOPED_TRACE(traits.name);
    const packed::LayerKind kind = PackedOp(traits.op);
    if (traits.Has(OpTraits::kOfPlansOnly)) {
      EXPECT_EQ(kind, packed::LAYER_KIND_UNSPECIFIED);
    } else {
      EXPECT_EQ(packed::LayerKind_Name(kind), SchemaName(traits.name));
      EXPECT_EQ(UnpackedOp(kind), traits.op);
    }
  }
}

TEST(FileLayoutTest, KnowsNoOtherNumbers) {
  EXPECT_EQ(UnpackedOp(packed::LAYER_KIND_UNSPECIFIED), std::nullopt);
  EXPECT_EQ(UnpackedOp(static_cast<packed::LayerKind>(99)), std::nullopt);
}

}  // namespace
}  // namespace swizzle
