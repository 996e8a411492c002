#include "server/model/string_tensor.h"

#include <gtest/gtest.h>

#include <string>

namespace swizzle {
namespace {

TEST(StringTensor, IsWhatWasAppended) {
  std::string tensor;
  AppendElement("hi", tensor);
  AppendElement("", tensor);
  EXPECT_EQ(tensor, std::string("\x02\0\0\0hi\0\0\0\0", 10));
  const auto is_tensor = [](const std::string& text, int64_t count) {
    return IsStringTensor(std::as_bytes(std::span(text)), count);
  };
  EXPECT_TRUE(is_tensor(tensor, 2));
  EXPECT_FALSE(is_tensor(tensor, 1)) << "bytes are left";
  EXPECT_FALSE(is_tensor(tensor, 3)) << "an element has no length";
  EXPECT_FALSE(is_tensor(std::string("\x02\0\0\0h", 5), 1)) << "an element ends early";
  EXPECT_TRUE(is_tensor("", 0));
}

}  // namespace
}  // namespace swizzle
