#include "server/security/access_class.h"

#include <algorithm>

namespace swizzle {
namespace {

using enum AccessClass;

// By name; paths have {model} for a model, with or without its version, and {region} for one of shared memory. A call
// whose class depends on what it says (settings that are read or written) has the lesser one here, and its reaction
// asks for the other.
constexpr auto kRules = std::to_array<AccessRule>({
    {"/", kProbe},  // a page without data, which asks for /status and /metrics
    {"/decode", kInfer},
    {"/embed", kInfer},
    {"/embed_all", kInfer},
    {"/embed_sparse", kInfer},
    {"/grpc.health.v1.Health/Check", kProbe},
    {"/grpc.health.v1.Health/Watch", kProbe},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", kReflection},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kReflection},
    {"/health", kProbe},
    {"/inference.GRPCInferenceService/CudaSharedMemoryRegister", kControl},
    {"/inference.GRPCInferenceService/CudaSharedMemoryStatus", kControl},
    {"/inference.GRPCInferenceService/CudaSharedMemoryUnregister", kControl},
    {"/inference.GRPCInferenceService/LogSettings", kMetadata},
    {"/inference.GRPCInferenceService/ModelConfig", kMetadata},
    {"/inference.GRPCInferenceService/ModelInfer", kInfer},
    {"/inference.GRPCInferenceService/ModelMetadata", kMetadata},
    {"/inference.GRPCInferenceService/ModelReady", kMetadata},
    {"/inference.GRPCInferenceService/ModelStatistics", kMetadata},
    {"/inference.GRPCInferenceService/ModelStreamInfer", kInfer},
    {"/inference.GRPCInferenceService/RepositoryIndex", kMetadata},
    {"/inference.GRPCInferenceService/RepositoryModelLoad", kControl, true},
    {"/inference.GRPCInferenceService/RepositoryModelUnload", kControl, true},
    {"/inference.GRPCInferenceService/ServerLive", kProbe},
    {"/inference.GRPCInferenceService/ServerMetadata", kMetadata},
    {"/inference.GRPCInferenceService/ServerReady", kProbe},
    {"/inference.GRPCInferenceService/SystemSharedMemoryRegister", kControl},
    {"/inference.GRPCInferenceService/SystemSharedMemoryStatus", kControl},
    {"/inference.GRPCInferenceService/SystemSharedMemoryUnregister", kControl},
    {"/inference.GRPCInferenceService/TraceSetting", kMetadata},
    {"/info", kMetadata},
    {"/livez", kProbe},
    {"/metrics", kMetrics},
    {"/predict", kInfer},
    {"/readyz", kProbe},
    {"/rerank", kInfer},
    {"/similarity", kInfer},
    {"/startupz", kProbe},
    {"/status", kMetrics},
    {"/tokenize", kInfer},
    {"/v1/embeddings", kInfer},
    {"/v2", kMetadata},
    {"/v2/cudasharedmemory/region/{region}/register", kControl},
    {"/v2/cudasharedmemory/region/{region}/status", kControl},
    {"/v2/cudasharedmemory/region/{region}/unregister", kControl},
    {"/v2/cudasharedmemory/status", kControl},
    {"/v2/cudasharedmemory/unregister", kControl},
    {"/v2/health/live", kProbe},
    {"/v2/health/ready", kProbe},
    {"/v2/logging", kMetadata},
    {"/v2/models/stats", kMetadata},
    {"/v2/models/{model}", kMetadata},
    {"/v2/models/{model}/config", kMetadata},
    {"/v2/models/{model}/decode", kInfer},
    {"/v2/models/{model}/embed", kInfer},
    {"/v2/models/{model}/embed_all", kInfer},
    {"/v2/models/{model}/embed_sparse", kInfer},
    {"/v2/models/{model}/infer", kInfer},
    {"/v2/models/{model}/info", kMetadata},
    {"/v2/models/{model}/predict", kInfer},
    {"/v2/models/{model}/ready", kMetadata},
    {"/v2/models/{model}/rerank", kInfer},
    {"/v2/models/{model}/similarity", kInfer},
    {"/v2/models/{model}/stats", kMetadata},
    {"/v2/models/{model}/tokenize", kInfer},
    {"/v2/models/{model}/trace/setting", kMetadata},
    {"/v2/repository/index", kMetadata},
    {"/v2/repository/models/{model}/load", kControl, true},
    {"/v2/repository/models/{model}/unload", kControl, true},
    {"/v2/systemsharedmemory/region/{region}/register", kControl},
    {"/v2/systemsharedmemory/region/{region}/status", kControl},
    {"/v2/systemsharedmemory/region/{region}/unregister", kControl},
    {"/v2/systemsharedmemory/status", kControl},
    {"/v2/systemsharedmemory/unregister", kControl},
    {"/v2/trace/setting", kMetadata},
});

static_assert(std::ranges::is_sorted(kRules, {}, &AccessRule::name));

}  // namespace

std::optional<AccessRule> FindAccessRule(std::string_view name) {
  const auto* const found = std::ranges::lower_bound(kRules, name, {}, &AccessRule::name);
  if (found == kRules.end() || found->name != name) return std::nullopt;
  return *found;
}

}  // namespace swizzle
