// The table in model_loader/OPERATORS.md is the operator table. With SWIZZLE_UPDATE=1 in the environment it is written
// again.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/graph/operator_table.h"

namespace swizzle {
namespace {

constexpr char kPage[] = SWIZZLE_SOURCE_DIR "/model_loader/OPERATORS.md";
constexpr char kBegin[] = "<!-- made of graph/operator_table.cc by operators_page_test.cc -->\n";
constexpr char kEnd[] = "<!-- end of what is made -->\n";

const char* TextOf(PlanUse use) {
  switch (use) {
    case PlanUse::kNone:
      return "";
    case PlanUse::kRemoved:
      return "removed";
    case PlanUse::kFolded:
      return "on shapes and constants";
    case PlanUse::kComputed:
      return "yes";
  }
  return "";
}

const char* TextOf(SequenceUse use) {
  switch (use) {
    case SequenceUse::kNone:
      return "";
    case SequenceUse::kRemoved:
      return "removed";
    case SequenceUse::kByElement:
      return "element by element";
    case SequenceUse::kByForm:
      return "yes";
  }
  return "";
}

std::string TextOf(const InterpreterUse& use, bool is_expanded) {
  if (!use.Runs()) return is_expanded ? "written out" : "";
  const std::string first = "opset " + std::to_string(use.first_opset);
  return use.last_opset == 0 ? "from " + first : first + " to " + std::to_string(use.last_opset);
}

// "axes (below 18), keepdims"
std::string AttributesText(const OperatorSpec& spec) {
  std::stringstream listed{std::string(spec.attributes)};
  std::string text;
  for (std::string name; listed >> name;) {
    const size_t below = name.find('<');
    text += (text.empty() ? "" : ", ") + name.substr(0, below);
    if (below != std::string::npos) text += " (below " + name.substr(below + 1) + ")";
  }
  return text;
}

std::string Table() {
  std::string table = "| operator | plan | encoders | interpreter | attributes |\n|---|---|---|---|---|\n";
  for (const OnnxOperator& row : OnnxOperators()) {
    const std::string domain = row.spec.domain.empty() ? "" : std::string(row.spec.domain) + ".";
    table += "| " + domain + std::string(row.spec.op) + " | " + TextOf(row.plan) + " | " + TextOf(row.sequences) +
             " | " + TextOf(row.interpreter, row.is_expanded) + " | " + AttributesText(row.spec) + " |\n";
  }
  return table;
}

TEST(OperatorsPageTest, ShowsTheTable) {
  std::stringstream text;
  text << std::ifstream(kPage).rdbuf();
  const std::string page = text.str();
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string expected = page.substr(0, begin) + kBegin + "\n" + Table() + "\n" + page.substr(end);
  if (std::getenv("SWIZZLE_UPDATE") != nullptr) {
    std::ofstream(kPage) << expected;
  } else {
    EXPECT_EQ(page, expected) << "SWIZZLE_UPDATE=1 writes it again";
  }
}

}  // namespace
}  // namespace swizzle
