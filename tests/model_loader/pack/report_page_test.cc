#include "model_loader/pack/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kBegin = "<script type=\"application/json\" id=\"data\">";

// What stands between kBegin and the end that a browser would see.
std::string DataOf(const std::string& page) {
  const size_t from = page.find(kBegin) + kBegin.size();
  return page.substr(from, page.find("</script", from) - from);
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportPage, IsOneWholePage) {
  const std::string page = ReportPage({{"model", "m.onnx"}});
  EXPECT_EQ(page.rfind("<!doctype html>", 0), 0u);
  EXPECT_THAT(page, HasSubstr("</html>\n"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("function makeChart"));
  EXPECT_EQ(Count(page, kBegin), 1);
}

TEST(ReportPage, HoldsItsDataWhateverTheNames) {
  const std::string plain = ReportPage({{"model", "m"}});
  for (const std::string name : {"</script><script>alert(1)</script>", "<!--<script>", "\"'\\&amp;&<>", "]]>",
                                 "{{script}}{{data}}", "\xE2\x80\xA8\xE2\x80\xAE \xF0\x9F\x98\x80", "\x01\x1f\n"}) {
    const std::string page = ReportPage({{"model", "m"}, {"layers", {{{"name", name}}}}});
    const std::string data = DataOf(page);
    EXPECT_EQ(nlohmann::json::parse(data)["layers"][0]["name"], name);
    EXPECT_EQ(data.find_first_of("<>&"), std::string::npos) << data;
    for (char letter : data) EXPECT_TRUE(letter >= ' ' && letter <= '~') << data;
    EXPECT_EQ(Count(page, "<script"), Count(plain, "<script"));
    EXPECT_EQ(Count(page, "</script"), Count(plain, "</script"));
    EXPECT_EQ(page.size() - data.size(), plain.size() - DataOf(plain).size()) << "nothing outside the block";
  }
}

TEST(ReportPage, ReplacesWhatIsNotUtf8) {
  const std::string data = DataOf(ReportPage({{"model", "\xff\xfe</script>"}}));
  EXPECT_EQ(nlohmann::json::parse(data)["model"], "\xEF\xBF\xBD\xEF\xBF\xBD</script>");
}

TEST(ReportPage, LoadsNothing) {
  const std::string page = ReportPage({{"model", "m"}});
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* part : {" src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML", "import("}) {
    EXPECT_THAT(page, Not(HasSubstr(part)));
  }
  EXPECT_EQ(Count(page, "://"), 1) << "SVG's namespace, which is a name";
}

}  // namespace
}  // namespace swizzle::pack
