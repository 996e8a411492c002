#include "model_loader/pack/report_page.h"

#include <string_view>
#include <utility>

#include "kernels/base/status.h"
#include "model_loader/pack/report/sources.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
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

std::string ReportPage(const nlohmann::ordered_json& report) {
  const PageSources sources = ReportSources();
  const std::string json = EmbeddedJson(report);
  std::string_view rest = sources.page;
  std::string page;
  for (const auto& [mark, text] : {std::pair<std::string_view, std::string_view>{"{{style}}", sources.style},
                                   {"{{data}}", json},
                                   {"{{script}}", sources.script}}) {
    const size_t at = rest.find(mark);
    SWIZZLE_CHECK(at != std::string::npos);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

}  // namespace swizzle::pack
