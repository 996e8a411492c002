// Plans for what the optimised plan does not take whole: each layer with constant weights, in whatever graph, runs by
// the kernels of plans, and only what lies between is interpreted.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_PLAN_REGIONS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_PLAN_REGIONS_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/plan_tuner.h"
#include "model_loader/regions/free_sizes.h"
#include "model_loader/regions/regional_program.h"

namespace swizzle::regions {

// What a program runs on, and outlives it.
struct RegionBackends {
  // NOLINTNEXTLINE(google-explicit-constructor): a backend alone is the host's
  RegionBackends(Backend& on_host, DeviceBackend* on_device = nullptr, const DeviceFunctions* its_functions = nullptr)
      : host(on_host), device(its_functions == nullptr ? nullptr : on_device), functions(its_functions) {}

  Backend& host;                     // the CPU's
  DeviceBackend* device;             // that regions and what is between them run on; null: the host
  const DeviceFunctions* functions;  // of the device
};

// What requests are like. Value type.
struct ExpectedRequests {
  interpreter::Limits limits = {};  // that each keeps to
  SampleShapes samples = {};        // what some of them have
};

// Kernels are chosen as the options say, regions sharing the tuning budget evenly. What cannot be planned stays as it
// is: a program whose shapes cannot be known has no regions. One that a device does not take is planned for the host,
// in FP32.
RegionalProgram PlanRegions(std::shared_ptr<const interpreter::Program> program, const RegionBackends& backends,
                            const PlanOptions& options, const ExpectedRequests& requests = {});

struct TunableRegions {
  RegionalProgram program;
  std::unique_ptr<PlanTuner> tuner;  // null: all was known; replaces plans of `program` itself
};

// The same, but nothing is measured now; of the options, the tuning budget and the gate are the tuner's. The backends
// and the tuning cache, which is that of what computes, outlive both.
TunableRegions PlanTunableRegions(std::shared_ptr<const interpreter::Program> program, const RegionBackends& backends,
                                  const PlanOptions& options, const ExpectedRequests& requests = {});

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_PLAN_REGIONS_H_
