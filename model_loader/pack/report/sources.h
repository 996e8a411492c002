// The files of this folder, compiled in by embed.cmake.
#ifndef SWIZZLE_MODEL_LOADER_PACK_REPORT_SOURCES_H_
#define SWIZZLE_MODEL_LOADER_PACK_REPORT_SOURCES_H_

#include <string_view>

namespace swizzle::pack {

struct PageSources {
  std::string_view page;  // HTML with {{style}}, {{data}} and {{script}} where those belong
  std::string_view style;
  std::string_view script;
};

PageSources ReportSources();

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_REPORT_SOURCES_H_
