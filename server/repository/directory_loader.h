// Loads one version of a model: reads it, makes its plan, and starts what serves it.
#ifndef SWIZZLE_SERVER_REPOSITORY_DIRECTORY_LOADER_H_
#define SWIZZLE_SERVER_REPOSITORY_DIRECTORY_LOADER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/devices.h"
#include "proto/model_config.pb.h"
#include "server/batching/executor_threads.h"
#include "server/model/compute_turns.h"
#include "server/repository/memory_claim.h"
#include "server/repository/model_place.h"
#include "server/repository/model_repository.h"
#include "server/repository/model_table.h"
#include "server/repository/retirement.h"
#include "server/telemetry/metrics.h"
#include "server/tuning/background_tuner.h"

namespace swizzle {

// One version of a model. What it refers to outlives the load.
struct VersionFolder {
  const ModelPlace& place;  // the model's
  const std::string& name;
  int64_t version;
  const std::optional<inference::ModelConfig>& config;  // none: it is derived
  // Largest batches may be smaller than the model asks for, where they have no room: not where that replaces one that
  // has it.
  bool may_lower_batch;
  bool aside;  // models serve meanwhile: what the load computes gives way to their requests
  const std::function<Status()>& check_unchanged;  // is asked once the files are read
};

// What models of one repository share. All of it outlives them.
struct LoadingPlace {
  const RepositoryOptions& options;
  const Devices& devices;
  Metrics& metrics;
  BackgroundTuner* const tuner;  // is told what is to be tuned; null: nothing is
  MemoryRooms& rooms;            // less, once a model is loaded
  std::shared_ptr<ComputeTurns> turns;
  std::shared_ptr<ExecutorThreads> threads;
  Retirement& retirement;
  const ModelTable& table;  // where ensembles find their steps
};

// The log says what was done, and how long it took. An error says why, without paths, which are no client's business.
StatusOr<std::shared_ptr<ServingModel>> LoadVersion(const VersionFolder& folder, const LoadingPlace& place);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_DIRECTORY_LOADER_H_
