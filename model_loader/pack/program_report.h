// What the tool says of a program with regions beside their plans: why no plan takes it whole, and what runs between
// them. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_PROGRAM_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PACK_PROGRAM_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "model_loader/regions/plan_regions.h"
#include "model_loader/regions/region_times.h"
#include "nlohmann/json_fwd.hpp"

namespace swizzle::pack {

struct ProgramReport {
  regions::RegionalProgram regional;
  std::string reason;                              // why no plan takes the whole
  int64_t constant_bytes = 0;                      // of all constants, dense
  std::optional<regions::RegionTimes> times = {};  // of one run, where it was measured
  bool schedule = false;                           // whether text has the steps of a run
};

// Why the model is not planned whole, its regions, and the nodes that are interpreted, by operator, with what they took
// where that was measured. Ends with a newline.
std::string ProgramText(const ProgramReport& report);

// A table of the steps of a run, in their order (regions/schedule.h).
std::string ScheduleText(const regions::RegionalProgram& regional);

// What both say, with every node, and the layers of each region in short, under keys of their own.
void AddProgram(const ProgramReport& report, nlohmann::ordered_json& object);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_PROGRAM_REPORT_H_
