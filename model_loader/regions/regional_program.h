// A program of which plans compute regions: what plan_regions.h makes, what is said about it, and what runs it.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_REGIONAL_PROGRAM_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_REGIONAL_PROGRAM_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"
#include "model_loader/interpreter/run/program_runner.h"
#include "model_loader/offload/device_program.h"
#include "model_loader/regions/free_sizes.h"
#include "model_loader/regions/planned_region.h"

namespace swizzle::regions {

// A program with its regions. Value type; what it holds is immutable.
struct RegionalProgram {
  std::shared_ptr<const interpreter::Program> program;
  // In the order of their first nodes, one for all that are alike (likeness.h), then what recurrent nodes multiply
  // (recurrence.h).
  std::vector<std::shared_ptr<const PlannedRegion>> regions;
  std::vector<std::shared_ptr<const PlannedRegion>> again = {};            // of these, what runs at further places
  std::string unplanned;                                                   // why there are none; empty where there are
  std::vector<std::string> refusals;                                       // why regions were not planned as a whole
  interpreter::RunMemory run_memory = {};                                  // of a run node by node, as far as is known
  std::vector<std::shared_ptr<const interpreter::Part>> recurrences = {};  // which run some of the regions
  // Null: it runs on the host.
  std::shared_ptr<const offload::DeviceProgram> on_device = nullptr;
  std::string not_on_device = {};  // why, where it was to run on a device
  RunInputs surveyed = {};         // of the run that regions were planned by
  int unplanned_layers = 0;        // nodes with weights that no region has
  Status refusal = {};             // an error: no request can be computed, and whose fault that is

  size_t region_count() const { return regions.size() + again.size(); }
  int layers() const;                // of all regions, at all places
  size_t interpreted_nodes() const;  // on the host, for elements rather than shapes where it runs on a device
  std::string OperatorCounts() const;
  int device_nodes() const { return on_device == nullptr ? 0 : on_device->placement().device_nodes; }
  std::string Text() const;  // "regions: 12 planned (49 layers), 37 interpreted nodes"
  // "in regions", and whether anything else is between them; or that there are none.
  std::string_view HowItRuns() const;
  // That zeros in weights bring nothing, and why, where that is so of all layers or of some. Else empty.
  std::string ZerosText() const;
  // "; all regions run on cuda:0, and 21 nodes between them", or why they don't where they were to. Else empty.
  std::string PlaceText() const;
  // threads: of the host's stream. gate: asked between steps on the host; null: it never waits. It and `host` outlive
  // the result.
  StatusOr<std::unique_ptr<interpreter::ProgramRunner>> NewRunner(Backend& host, int threads,
                                                                  const interpreter::Limits& limits = {},
                                                                  StepGate* gate = nullptr) const;
  // What it holds of weights where it runs: those of regions as kernels do, and constants of what is between them,
  // which the host keeps in any case.
  int64_t weight_bytes() const;
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_REGIONAL_PROGRAM_H_
