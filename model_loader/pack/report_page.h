// The page that `inspect --report` and `advise --report` write: one HTML file that needs nothing but itself. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_REPORT_PAGE_H_
#define SWIZZLE_MODEL_LOADER_PACK_REPORT_PAGE_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace swizzle::pack {

// Shows a ReportObject (model_report.h) or an AdviceObject (advice_report.h). Names in it come from models that nobody
// vouches for: they reach the page as JSON only, ASCII without <, > and &, and its script sets them as text.
std::string ReportPage(const nlohmann::ordered_json& report);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_REPORT_PAGE_H_
