// Paths of the Open Inference Protocol over HTTP, of Triton's extensions, and of vectors and scores of texts as
// OpenAI's and text-embeddings-inference's clients ask for them: which call a path names, of which model or region of
// shared memory. Functions only.
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
  kOpenAiEmbeddings,
  kTeiEmbed,
  kTeiEmbedAll,
  kTeiEmbedSparse,
  kTeiSimilarity,
  kTeiRerank,
  kTeiPredict,
  kTeiTokenize,
  kTeiDecode,
  kTeiInfo,
  kIndex,
  kLoad,
  kUnload,
  kLogSettings,
  kTraceSettings,
  kSystemRegions,
  kRegisterSystem,
  kUnregisterSystem,
  kCudaRegions,
  kRegisterCuda,
  kUnregisterCuda,
};

// Whether a path is read from, by GET and HEAD, written to, by POST, or both.
enum class RestMethods : uint8_t { kGet, kPost, kBoth };

struct RestPath {
  RestAction action;
  std::string_view rule;  // of FindAccessRule
  RestMethods methods = RestMethods::kGet;
  std::string model = {}, version = {}, region = {};
};

// `target` is that of a request, with a query or without; none where it names no call. Escapes (%2E) are resolved in
// the names of models, versions and regions.
std::optional<RestPath> ParseRestPath(std::string_view target);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_PATH_H_
