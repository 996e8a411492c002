// The text of config.pbtxt, or of JSON, as the configuration of an identity model and of a model file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/config/config_parameters.h"
#include "server/config/model_config.h"
#include "server/config/served_spec.h"

namespace swizzle {
namespace {

// A model as a file would have it, for the configuration to agree with or contradict.
ModelSpec Derived() {
  ModelSpec spec;
  spec.name = "model";
  spec.max_batch_size = 8;
  spec.inputs = {{"image", DType::kFloat32, {1, 28, 28}}};
  spec.outputs = {{"logits", DType::kFloat32, {10}}};
  return spec;
}

void Check(const Status& status) { SWIZZLE_CHECK(status.ok() || !status.message().empty()); }

void Configure(const StatusOr<inference::ModelConfig>& config) {
  Check(config.status());
  if (!config.ok()) return;
  ExecuteDelay(*config);
  const auto spec = IsIdentity(*config) ? IdentitySpec(*config, "model", 1) : ConfigureSpec(*config, Derived());
  Check(spec.status());
  // What the server says it serves with is a configuration that it would accept.
  if (spec.ok()) SWIZZLE_CHECK(ConfigOf(*spec, *config).IsInitialized());
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  swizzle::Configure(swizzle::ParseModelConfig(text, "model"));
  swizzle::Configure(swizzle::ParseModelConfigJson(text, "model"));
  return 0;
}
