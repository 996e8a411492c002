#include "model_loader/pack/report_page.h"

#include <string_view>
#include <utility>

#include "kernels/base/status.h"
#include "model_loader/pages/page.h"
#include "nlohmann/json.hpp"

namespace swizzle {

PageSources ReportSources();  // of the files in report/

namespace pack {
namespace {

// JSON that is safe inside a script element. The letters escaped stand in strings only.
std::string EmbeddedJson(const nlohmann::ordered_json& report) {
  const std::string json = report.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  for (char letter : json) {
    switch (letter) {
      case '<':
        text += "\\u003c";
        break;
      case '>':
        text += "\\u003e";
        break;
      case '&':
        text += "\\u0026";
        break;
      default:
        text += letter;
    }
  }
  return text;
}

}  // namespace

std::string ReportPage(const nlohmann::ordered_json& report) { return FillPage(ReportSources(), EmbeddedJson(report)); }

}  // namespace pack
}  // namespace swizzle
