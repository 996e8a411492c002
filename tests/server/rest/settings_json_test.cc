#include "server/rest/settings_json.h"

#include <gtest/gtest.h>

#include <string>

namespace swizzle {
namespace {

TEST(SettingsJsonTest, LogSettingsKeepTheirTypes) {
  const auto request = ReadLogSettings(R"({"log_info": false, "log_verbose_level": 3, "log_format": "json"})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->settings_size(), 3);
  EXPECT_FALSE(request->settings().at("log_info").bool_param());
  EXPECT_EQ(request->settings().at("log_verbose_level").uint32_param(), 3u);
  EXPECT_EQ(request->settings().at("log_format").string_param(), "json");
  EXPECT_TRUE(ReadLogSettings("")->settings().empty());
  EXPECT_TRUE(ReadLogSettings("{}")->settings().empty());
  for (const char* const text : {"[]", "7", "{", R"({"a": null})", R"({"a": -1})", R"({"a": 4294967296})",
                                 R"({"a": 1.5})", R"({"a": {}})", R"({"a": [true]})"}) {
    EXPECT_EQ(ReadLogSettings(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(SettingsJsonTest, TraceSettingsAreTexts) {
  const auto request =
      ReadTraceSettings(R"({"trace_level": ["OFF"], "trace_rate": "7", "trace_count": -1, "x": null})", "m");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->model_name(), "m");
  EXPECT_EQ(request->settings().at("trace_level").value(0), "OFF");
  EXPECT_EQ(request->settings().at("trace_rate").value(0), "7");
  EXPECT_EQ(request->settings().at("trace_count").value(0), "-1");
  EXPECT_EQ(request->settings().at("x").value_size(), 0);
  EXPECT_TRUE(ReadTraceSettings("", "")->settings().empty());
  for (const char* const text :
       {"[]", "{", R"({"a": true})", R"({"a": 0.5})", R"({"a": {}})", R"({"a": [null]})", R"({"a": [["b"]]})"}) {
    EXPECT_EQ(ReadTraceSettings(text, "").status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(SettingsJsonTest, AnswersAreObjects) {
  inference::LogSettingsResponse log;
  (*log.mutable_settings())["a"].set_bool_param(true);
  (*log.mutable_settings())["b"].set_uint32_param(7);
  (*log.mutable_settings())["c"].set_string_param("\"");
  EXPECT_EQ(WriteSettings(log), R"({"a":true,"b":7,"c":"\""})");
  inference::TraceSettingResponse trace;
  (*trace.mutable_settings())["trace_level"].add_value("OFF");
  (*trace.mutable_settings())["trace_rate"].add_value("7");
  (*trace.mutable_settings())["none"];
  EXPECT_EQ(WriteSettings(trace), R"({"none":[],"trace_level":["OFF"],"trace_rate":"7"})");
}

}  // namespace
}  // namespace swizzle
