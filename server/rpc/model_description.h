// What the service tells of models: metadata, statistics and states as protocol messages.
#ifndef SWIZZLE_SERVER_RPC_MODEL_DESCRIPTION_H_
#define SWIZZLE_SERVER_RPC_MODEL_DESCRIPTION_H_

#include <vector>

#include "proto/grpc_service.pb.h"
#include "server/model/model.h"
#include "server/repository/readiness.h"
#include "server/telemetry/metrics.h"

namespace swizzle {

// `versions`: those that serve. Shapes carry the batch dimension, as -1, where the model batches.
inference::ModelMetadataResponse DescribeModel(const Model& model, const std::vector<int64_t>& versions);

inference::ModelStatistics DescribeStatistics(const Model& model, const ModelStatisticsTotals& totals);

// The models of a repository, each version with its state and, where it does not serve or could not be loaded again,
// the reason.
inference::RepositoryIndexResponse DescribeIndex(const std::vector<ModelStatus>& models, bool only_ready);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_MODEL_DESCRIPTION_H_
