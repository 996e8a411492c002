// Requests that a model runs before it serves: model_warmup of config.pbtxt. What comes first of a shape takes longer,
// for memory is had and kernels are loaded then; with these no client pays for it.
#ifndef SWIZZLE_SERVER_REPOSITORY_WARM_UP_H_
#define SWIZZLE_SERVER_REPOSITORY_WARM_UP_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/regions/free_sizes.h"
#include "proto/model_config.pb.h"
#include "server/model/model.h"
#include "server/model/request.h"

namespace swizzle {

// Thread-compatible. Keeps the tensors of all samples.
class WarmUp {
 public:
  // The shapes that the samples have to a model of this specification, as far as they fit it.
  static regions::SampleShapes ShapesOf(const inference::ModelConfig& config, const ModelSpec& spec);

  // Checks the samples as requests are checked. INVALID_ARGUMENT, and the like, naming the sample, where the model
  // would take no such request, or a file of one cannot be had. `folder` is the model's.
  static StatusOr<WarmUp> Of(const inference::ModelConfig& config, const Model& model,
                             const std::filesystem::path& folder);

  // All samples, each as often as it says; what the session made is dropped. An error names the sample.
  Status Run(Session& session) const;

 private:
  struct Sample {
    std::string name;
    Request request;       // of one row
    int64_t together = 1;  // such requests in a batch
    int64_t batches = 1;
  };

  std::vector<Sample> samples_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_WARM_UP_H_
