// What starting to serve a version takes, whatever the model is. Free functions.
#ifndef SWIZZLE_SERVER_REPOSITORY_STARTED_MODEL_H_
#define SWIZZLE_SERVER_REPOSITORY_STARTED_MODEL_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "proto/model_config.pb.h"
#include "server/config/config_fields.h"
#include "server/model/model.h"
#include "server/repository/directory_loader.h"
#include "server/repository/model_repository.h"
#include "server/repository/serving_model.h"

namespace swizzle {

// Nothing that a file says is ignored in silence.
void LogNotices(std::string_view model, std::span<const ConfigNotice> notices);
// Logs all fields that change nothing in this server.
void LogConfigNotices(std::string_view model, const inference::ModelConfig& config, const RepositoryOptions& options);

// INVALID_ARGUMENT where a tensor's name is none that a message can hold.
Status CheckTensorNames(const ModelSpec& spec);

// The model with its metrics and its configuration, and no batcher yet.
std::shared_ptr<ServingModel> StartServing(std::shared_ptr<Model> model, const inference::ModelConfig& config,
                                           absl::Duration load_time, const LoadingPlace& place);
// Puts the response cache before its batcher, where it asks for that.
void KeepAnswers(const LoadingPlace& place, ServingModel& serving);
void LogLoaded(const Model& model, absl::Duration load_time);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_STARTED_MODEL_H_
