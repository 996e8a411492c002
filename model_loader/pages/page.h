// Pages that are one file: HTML with its style and its scripts, of the files of a folder, which embed.cmake compiles in
// after those that all pages share (page.css, elements.js). Functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_PAGES_PAGE_H_
#define SWIZZLE_MODEL_LOADER_PAGES_PAGE_H_

#include <string>
#include <string_view>

namespace swizzle {

struct PageSources {
  std::string_view page;  // HTML with {{style}}, perhaps {{data}}, and {{script}}, in this order, where those belong
  std::string_view style;
  std::string_view script;
};

// REQUIRES: `data` can stand in an element of HTML.
std::string FillPage(const PageSources& sources, std::string_view data = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PAGES_PAGE_H_
