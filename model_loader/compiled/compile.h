// From a model as it was read to what runs it on each of its devices, and to what tunes that when there is time. Free
// functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_COMPILED_COMPILE_H_
#define SWIZZLE_MODEL_LOADER_COMPILED_COMPILE_H_

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/devices.h"
#include "model_loader/compiled/compiled_model.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/plan_tuner.h"

namespace swizzle {

// Gives outputs that an unplanned model leaves undeclared a type and a shape (regions::WithDeclaredOutputs).
Status DeclareOutputs(RunnableModel& model, Backend& host, int threads);

// What a model is compiled for and by. All of it outlives what comes of it.
struct CompilePlace {
  const Devices& devices;
  const std::vector<Backend*>& backends;               // that the model may run on: GPUs, or the CPU
  std::function<PlanOptions(const Backend&)> options;  // of each
  // Kernels are chosen by what is known now, and a tuner comes with what is not; else they are measured now, for as
  // long as the options say.
  bool tunable = false;
  // A model in regions runs on GPUs even if the host has something to compute beside them.
  bool prefers_devices = false;
  regions::ExpectedRequests requests = {};  // of a model in regions
};

// One a device; of each what tunes it, null where all is known.
struct Compiled {
  std::vector<CompiledModel> models;
  std::vector<std::unique_ptr<PlanTuner>> tuners;
};

// A network on every backend; errors are MakePlan's. A program on each GPU where the place prefers that, or the host
// would have nothing to compute; else on the CPU, once. The first GPU decides; of the others those are left out that
// don't do as much. Where GPUs are preferred, and no part runs there, the model says why
// (RegionalProgram::not_on_device).
StatusOr<Compiled> Compile(RunnableModel model, const CompilePlace& place);

// For runs of so many rows of inputs as long as these. Nothing is measured: enough is known to find kernels that are
// not slow, and a few runs do not pay for more. threads: 0 takes all.
PlanOptions OptionsForRuns(const ModelInterface& model, std::span<const TensorView> inputs, int64_t rows, int threads);

// For the main device alone, or for the CPU where a model in regions does not run there; measured now.
StatusOr<CompiledModel> CompileFor(const Devices& devices, RunnableModel model, const PlanOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_COMPILED_COMPILE_H_
