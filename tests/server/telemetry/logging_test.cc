#include "server/telemetry/logging.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace swizzle {
namespace {

TEST(FormatLogEvent, TextIsMessageAndFields) {
  EXPECT_EQ(FormatLogEvent(LogFormat::kText, "model loaded", {{"model", "m"}, {"layers", 28}, {"sparsity", 0.5}}),
            "model loaded model=m layers=28 sparsity=0.5");
}

TEST(FormatLogEvent, TextQuotesWhatWouldBeAmbiguous) {
  EXPECT_EQ(FormatLogEvent(LogFormat::kText, "x", {{"a", "two words"}, {"b", ""}, {"c", "k=v"}, {"d", "line\nend"}}),
            R"(x a="two words" b="" c="k=v" d="line\nend")");
}

TEST(FormatLogEvent, JsonHoldsAnyBytes) {
  const std::string line = FormatLogEvent(LogFormat::kJson, "say \"hi\"", {{"name", "\xff\n"}, {"count", 3}});
  const nlohmann::json event = nlohmann::json::parse("{" + line + "}");
  EXPECT_EQ(event["message"], "say \"hi\"");
  EXPECT_EQ(event["count"], 3);
  EXPECT_EQ(event["name"], "\xEF\xBF\xBD\n");
}

}  // namespace
}  // namespace swizzle
