#include "server/rest/order_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace swizzle {
namespace {

using ::testing::HasSubstr;

TEST(OrderJsonTest, ParametersBecomeTheMessages) {
  const auto order = ReadLoadOrder(
      R"({"id": [{"parameters": 1}], "parameters": {"config": "{\"a\": 1}", "file:1/m": "AP8=", "n": -7, "b": true}})",
      "m");
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->model_name(), "m");
  EXPECT_EQ(order->repository_name(), "");
  ASSERT_EQ(order->parameters_size(), 4);
  EXPECT_EQ(order->parameters().at("config").string_param(), R"({"a": 1})");
  EXPECT_EQ(order->parameters().at("file:1/m").bytes_param(), std::string("\0\xff", 2));
  EXPECT_EQ(order->parameters().at("n").int64_param(), -7);
  EXPECT_TRUE(order->parameters().at("b").bool_param());
}

TEST(OrderJsonTest, AnOrderMayHaveNoParameters) {
  for (const char* const text : {"", "{}", R"({"parameters": {}})", R"({"x": {"parameters": {"y": 1}}})"}) {
    const auto order = ReadUnloadOrder(text, "m");
    ASSERT_TRUE(order.ok()) << text;
    EXPECT_EQ(order->model_name(), "m");
    EXPECT_TRUE(order->parameters().empty()) << text;
  }
}

TEST(OrderJsonTest, SaysWhatIsWrong) {
  const struct {
    std::string text;
    const char* said;
  } cases[] = {
      {"{", "is no JSON"},
      {"{} {}", "is no JSON"},
      {"true", "must be a JSON object"},
      {"[]", "must be a JSON object"},
      {R"({"parameters": "x"})", "must be an object"},
      {R"({"parameters": [1]})", "must be an object"},
      {R"({"parameters": {"a": {}}})", "parameter 'a' must be a string"},
      {R"({"parameters": {"a": []}})", "parameter 'a' must be a string"},
      {R"({"parameters": {"a": null}})", "must not be null"},
      {R"({"parameters": {"a": 0.5}})", "must not be a fraction"},
      {R"({"parameters": {"a": 18446744073709551615}})", "must not be a number"},
      {R"({"parameters": {"a": 1, "a": 2}})", "is there twice"},
      {R"({"parameters": {"a": 1}, "parameters": {"a": 2}})", "is there twice"},
      {R"({"parameters": {"file:x": "=!"}})", "'file:x' is no base64"},
      {R"({"parameters": {"file:x": 7}})", ""},
      {"{\"a\": " + std::string(100, '['), "nests deeper"},
      {"{\"a\": \"\xff\"}", "is no JSON"},
  };
  for (const auto& its : cases) {
    const auto order = ReadLoadOrder(its.text, "m");
    if (*its.said == '\0') {  // the service says that a file is bytes
      EXPECT_TRUE(order.ok()) << its.text;
      continue;
    }
    EXPECT_EQ(order.status().code(), StatusCode::kInvalidArgument) << its.text;
    EXPECT_THAT(std::string(order.status().message()), HasSubstr(its.said)) << its.text;
  }
}

}  // namespace
}  // namespace swizzle
