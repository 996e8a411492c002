// When a server is ready, and what keeps it from being so.
#ifndef SWIZZLE_SERVER_REPOSITORY_READINESS_H_
#define SWIZZLE_SERVER_REPOSITORY_READINESS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

enum class ModelState : uint8_t { kLoading, kReady, kFailed };

// What became of one directory of the repository.
struct ModelStatus {
  std::string name;
  int64_t version = 0;  // 0: none could be found, or was looked for
  Status status;        // OK: serving; why it failed, else UNAVAILABLE while it is loaded
  ModelState state = ModelState::kReady;
};

// Which models have to serve.
struct ReadyRule {
  enum class Who : uint8_t { kAll, kAny, kNamed };
  Who who = Who::kAll;
  std::vector<std::string> names;  // where kNamed
};

// "all", "any", or names separated by commas. INVALID_ARGUMENT for anything else.
StatusOr<ReadyRule> ParseReadyRule(std::string_view text);

struct Readiness {
  bool ready = false;
  std::vector<std::string> reasons;  // a sentence for each model that does not serve, whether or not it has to
};

// Pure.
Readiness JudgeReadiness(const ReadyRule& rule, std::span<const ModelStatus> models);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_READINESS_H_
