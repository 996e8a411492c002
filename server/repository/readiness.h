// When a server is ready, and what keeps it from being so.
#ifndef SWIZZLE_SERVER_REPOSITORY_READINESS_H_
#define SWIZZLE_SERVER_REPOSITORY_READINESS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

enum class ModelState : uint8_t {
  kLoading,
  kReady,
  kFailed,
  kUnloading,  // it takes no further requests, and has some yet
  kUnloaded,   // or not loaded yet; nobody waits for it
};

// What became of one version of a model, or of a model of which no version is known.
struct ModelStatus {
  std::string name;
  int64_t version = 0;  // 0: none could be found, or was looked for
  Status status;        // OK: serving; why it failed, else UNAVAILABLE
  ModelState state = ModelState::kReady;
  bool awaited = true;  // a server that waits for all models waits for it: it was to be loaded at the start
  Status reload = {};   // why it could not be replaced, and goes on serving; OK: nobody tried, or it was
};

// Of each model, whether a version of it serves.
std::map<std::string, bool> ServingByName(std::span<const ModelStatus> models);

// Which models have to serve.
struct ReadyRule {
  enum class Who : uint8_t { kAll, kAny, kNamed };
  Who who = Who::kAll;
  std::vector<std::string> names;  // where kNamed
};

// "all", "any", or names that models may have, separated by commas. INVALID_ARGUMENT for anything else.
StatusOr<ReadyRule> ParseReadyRule(std::string_view text);

struct Readiness {
  bool ready = false;
  std::vector<std::string> reasons;  // a sentence for what is to serve and does not, whether or not it has to
};

// Pure. A named model serves if one of its versions does. What was asked for later than at the start keeps nobody
// waiting: a server that serves stays ready while it loads more.
Readiness JudgeReadiness(const ReadyRule& rule, std::span<const ModelStatus> models);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_READINESS_H_
