// What the tool says of a model that the fallback executor runs. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_FALLBACK_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PACK_FALLBACK_REPORT_H_

#include <string>

#include "model_loader/load/loader.h"
#include "nlohmann/json_fwd.hpp"

namespace swizzle::pack {

// Why the model is not planned, and the nodes that run unoptimised, by operator. Ends with a newline.
std::string FallbackText(const FallbackModel& model);

// The same with every node. Keys only ever get added.
nlohmann::ordered_json FallbackObject(const std::string& name, const FallbackModel& model);

// The object, indented, with a newline at its end.
std::string FallbackJson(const std::string& name, const FallbackModel& model);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_FALLBACK_REPORT_H_
