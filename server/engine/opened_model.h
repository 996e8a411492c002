// A model file with what computes it: devices, kernel times, plans, and what tunes these.
#ifndef SWIZZLE_SERVER_ENGINE_OPENED_MODEL_H_
#define SWIZZLE_SERVER_ENGINE_OPENED_MODEL_H_

#include <filesystem>
#include <memory>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/devices.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/plan_tuner.h"
#include "server/engine/engine.h"
#include "server/model/served_model.h"

namespace swizzle::engine {

// What was asked for, checked.
struct CheckedOptions {
  Options asked;
  Precision precision = Precision::kFloat32;
  int threads = 0;  // of each run; 0: all
};
// INVALID_ARGUMENT, naming the option, what it is, and what it may be.
StatusOr<CheckedOptions> Check(const Options& options);

// Destroyed from the last member to the first. Thread-safe but for `tuners`.
struct OpenedModel {
  std::filesystem::path file;
  CheckedOptions options;
  Devices devices;
  TuningCache cache;  // in memory alone where no file was named
  std::shared_ptr<ServedModel> served = nullptr;
  std::shared_ptr<swizzle::Model> model = nullptr;      // the same, or what has it encode texts
  std::vector<std::unique_ptr<PlanTuner>> tuners = {};  // at most one; null: all is known
  bool on_gpu = false;
};

// Errors are Model::Open's.
StatusOr<std::unique_ptr<OpenedModel>> OpenModel(const std::filesystem::path& file, const Options& options);

}  // namespace swizzle::engine

#endif  // SWIZZLE_SERVER_ENGINE_OPENED_MODEL_H_
