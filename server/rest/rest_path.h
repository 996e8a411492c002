// Paths of the Open Inference Protocol over HTTP: which call a path names, of which model. Functions only.
#ifndef SWIZZLE_SERVER_REST_REST_PATH_H_
#define SWIZZLE_SERVER_REST_REST_PATH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace swizzle {

enum class RestAction : uint8_t {
  kServer,
  kLive,
  kReady,
  kStatistics,
  kModel,
  kModelReady,
  kConfig,
  kInfer,
  kIndex,
  kLoad,
  kUnload,
};

struct RestPath {
  RestAction action;
  std::string_view rule;  // of FindAccessRule
  bool posts = false;     // POST, rather than GET
  std::string model = {}, version = {};
};

// `target` is that of a request, with a query or without; none where it names no call. Escapes (%2E) are resolved in
// the names of models and versions.
std::optional<RestPath> ParseRestPath(std::string_view target);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_PATH_H_
