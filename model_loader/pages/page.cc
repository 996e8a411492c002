#include "model_loader/pages/page.h"

#include <utility>

#include "kernels/base/check.h"

namespace swizzle {

std::string FillPage(const PageSources& sources, std::string_view data) {
  std::string_view rest = sources.page;
  std::string page;
  for (const auto& [mark, text] : {std::pair<std::string_view, std::string_view>{"{{style}}", sources.style},
                                   {"{{data}}", data},
                                   {"{{script}}", sources.script}}) {
    const size_t at = rest.find(mark);
    if (at == std::string_view::npos && text.empty()) continue;
    SWIZZLE_CHECK(at != std::string_view::npos);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

}  // namespace swizzle
