// model_metrics of config.pbtxt: upper edges of a model's own histograms.
#ifndef SWIZZLE_SERVER_CONFIG_CONFIG_METRICS_H_
#define SWIZZLE_SERVER_CONFIG_CONFIG_METRICS_H_

#include "kernels/base/status.h"
#include "proto/model_config.pb.h"
#include "server/model/model.h"

namespace swizzle {

// INVALID_ARGUMENT for a family that is no histogram of models, or edges that don't ascend.
Status ApplyMetrics(const inference::ModelConfig& config, ModelSpec& spec);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_CONFIG_METRICS_H_
