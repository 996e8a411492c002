// Loads one model of the repository: reads it, makes its plan, and starts what serves it.
#ifndef SWIZZLE_SERVER_REPOSITORY_DIRECTORY_LOADER_H_
#define SWIZZLE_SERVER_REPOSITORY_DIRECTORY_LOADER_H_

#include <cstdint>
#include <filesystem>
#include <memory>

#include "kernels/devices.h"
#include "server/batching/executor_threads.h"
#include "server/model/compute_turns.h"
#include "server/repository/memory_claim.h"
#include "server/repository/model_repository.h"
#include "server/telemetry/metrics.h"
#include "server/tuning/background_tuner.h"

namespace swizzle {

struct LoadedDirectory {
  int64_t version = 0;  // 0: none could be found
  // Why it failed, without paths, which are no client's business.
  StatusOr<std::shared_ptr<ServingModel>> serving = absl::UnknownError("not loaded");
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
};

// `directory` is the model's, and its last part the model's name. The log says what was done, and how long it took.
LoadedDirectory LoadDirectory(const std::filesystem::path& directory, const LoadingPlace& place);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_DIRECTORY_LOADER_H_
