// What the tool says of a model that the plan does not take whole. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_FALLBACK_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PACK_FALLBACK_REPORT_H_

#include <optional>
#include <string>

#include "model_loader/load/loader.h"
#include "model_loader/regions/plan_regions.h"
#include "model_loader/regions/region_times.h"
#include "nlohmann/json_fwd.hpp"

namespace swizzle::pack {

// Why the model is not planned whole, its regions, and the nodes that are interpreted, by operator, with what they took
// where that was measured. Ends with a newline.
std::string FallbackText(const ProgramModel& model, const regions::RegionalProgram& regional,
                         const std::optional<regions::RegionTimes>& times = {});

// A table of the layers that regions hold, each with the kernel of its smallest batch; empty where there are none.
std::string RegionLayersText(const regions::RegionalProgram& regional);

// A table of the steps of a run, in their order (regions/schedule.h).
std::string ScheduleText(const regions::RegionalProgram& regional);

// What FallbackText says, with every node, and every layer of the regions. Keys only ever get added.
nlohmann::ordered_json FallbackObject(const std::string& name, const ProgramModel& model,
                                      const regions::RegionalProgram& regional,
                                      const std::optional<regions::RegionTimes>& times = {});

// The object, indented, with a newline at its end.
std::string FallbackJson(const std::string& name, const ProgramModel& model, const regions::RegionalProgram& regional,
                         const std::optional<regions::RegionTimes>& times = {});

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_FALLBACK_REPORT_H_
