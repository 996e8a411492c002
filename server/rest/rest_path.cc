#include "server/rest/rest_path.h"

#include <array>
#include <charconv>
#include <vector>

namespace swizzle {
namespace {

struct Row {
  std::string_view rule;
  RestAction action;
  RestMethods methods = RestMethods::kGet;
  bool versions = false;  // "/versions/VERSION" may stand behind the model
};

using enum RestMethods;

constexpr auto kRows = std::to_array<Row>({
    {"/decode", RestAction::kTeiDecode, kPost},
    {"/embed", RestAction::kTeiEmbed, kPost},
    {"/embed_all", RestAction::kTeiEmbedAll, kPost},
    {"/embed_sparse", RestAction::kTeiEmbedSparse, kPost},
    {"/health", RestAction::kReady},
    {"/info", RestAction::kTeiInfo},
    {"/predict", RestAction::kTeiPredict, kPost},
    {"/rerank", RestAction::kTeiRerank, kPost},
    {"/similarity", RestAction::kTeiSimilarity, kPost},
    {"/tokenize", RestAction::kTeiTokenize, kPost},
    {"/v1/embeddings", RestAction::kOpenAiEmbeddings, kPost},
    {"/v2", RestAction::kServer},
    {"/v2/cudasharedmemory/region/{region}/register", RestAction::kRegisterCuda, kPost},
    {"/v2/cudasharedmemory/region/{region}/status", RestAction::kCudaRegions},
    {"/v2/cudasharedmemory/region/{region}/unregister", RestAction::kUnregisterCuda, kPost},
    {"/v2/cudasharedmemory/status", RestAction::kCudaRegions},
    {"/v2/cudasharedmemory/unregister", RestAction::kUnregisterCuda, kPost},
    {"/v2/health/live", RestAction::kLive},
    {"/v2/health/ready", RestAction::kReady},
    {"/v2/logging", RestAction::kLogSettings, kBoth},
    {"/v2/models/stats", RestAction::kStatistics},
    {"/v2/models/{model}", RestAction::kModel, kGet, true},
    {"/v2/models/{model}/config", RestAction::kConfig, kGet, true},
    {"/v2/models/{model}/decode", RestAction::kTeiDecode, kPost},
    {"/v2/models/{model}/embed", RestAction::kTeiEmbed, kPost},
    {"/v2/models/{model}/embed_all", RestAction::kTeiEmbedAll, kPost},
    {"/v2/models/{model}/embed_sparse", RestAction::kTeiEmbedSparse, kPost},
    {"/v2/models/{model}/infer", RestAction::kInfer, kPost, true},
    {"/v2/models/{model}/info", RestAction::kTeiInfo},
    {"/v2/models/{model}/predict", RestAction::kTeiPredict, kPost},
    {"/v2/models/{model}/ready", RestAction::kModelReady, kGet, true},
    {"/v2/models/{model}/rerank", RestAction::kTeiRerank, kPost},
    {"/v2/models/{model}/similarity", RestAction::kTeiSimilarity, kPost},
    {"/v2/models/{model}/stats", RestAction::kStatistics, kGet, true},
    {"/v2/models/{model}/tokenize", RestAction::kTeiTokenize, kPost},
    {"/v2/models/{model}/trace/setting", RestAction::kTraceSettings, kBoth},
    {"/v2/repository/index", RestAction::kIndex, kPost},
    {"/v2/repository/models/{model}/load", RestAction::kLoad, kPost},
    {"/v2/repository/models/{model}/unload", RestAction::kUnload, kPost},
    {"/v2/systemsharedmemory/region/{region}/register", RestAction::kRegisterSystem, kPost},
    {"/v2/systemsharedmemory/region/{region}/status", RestAction::kSystemRegions},
    {"/v2/systemsharedmemory/region/{region}/unregister", RestAction::kUnregisterSystem, kPost},
    {"/v2/systemsharedmemory/status", RestAction::kSystemRegions},
    {"/v2/systemsharedmemory/unregister", RestAction::kUnregisterSystem, kPost},
    {"/v2/trace/setting", RestAction::kTraceSettings, kBoth},
});

constexpr std::string_view kModel = "{model}", kRegion = "{region}";

// What lies between slashes. The last one may end the path.
std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> parts;
  if (path.empty() || path.front() != '/') return parts;
  path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  while (true) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::optional<RestPath> Match(const Row& row, const std::vector<std::string_view>& parts) {
  RestPath path = {.action = row.action, .rule = row.rule, .methods = row.methods};
  size_t at = 0;
  for (const std::string_view wanted : Split(row.rule)) {
    if (at == parts.size()) return std::nullopt;
    const std::string_view part = parts[at++];
    if (wanted != kModel && wanted != kRegion) {
      if (part != wanted) return std::nullopt;
      continue;
    }
    if (part.empty()) return std::nullopt;
    (wanted == kModel ? path.model : path.region) = Unescaped(part);
    if (row.versions && at + 1 < parts.size() && parts[at] == "versions") {
      if (parts[at + 1].empty()) return std::nullopt;
      path.version = Unescaped(parts[at + 1]);
      at += 2;
    }
  }
  if (at != parts.size()) return std::nullopt;
  return path;
}

}  // namespace

std::optional<RestPath> ParseRestPath(std::string_view target) {
  const std::vector<std::string_view> parts = Split(target.substr(0, target.find_first_of("?#")));
  for (const Row& row : kRows) {
    if (std::optional<RestPath> path = Match(row, parts)) return path;
  }
  return std::nullopt;
}

}  // namespace swizzle
