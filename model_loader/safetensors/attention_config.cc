#include "model_loader/safetensors/attention_config.h"

#include <string>

namespace swizzle {
namespace {

constexpr char kParameters[] = "rope_parameters", kScaling[] = "rope_scaling", kTheta[] = "rope_theta";

// Of rope_parameters or rope_scaling, which may be missing.
Status RefuseScaling(const ConfigFields& fields, const char* name, const ConfigFields& parameters) {
  for (const char* const type_field : {"rope_type", "type"}) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::string type, parameters.Text(type_field, "default"));
    if (type == "default") continue;
    return Unimplemented("its ", name, " is ", fields.ShownOf(name), "; only the ", type_field,
                         " default is supported");
  }
  return {};
}

}  // namespace

StatusOr<float> ReadTheta(const ConfigFields& fields, const char* attention, const char* name, float absent) {
  SWIZZLE_ASSIGN_OR_RETURN(const ConfigFields scaling, fields.Within(kScaling));
  SWIZZLE_RETURN_IF_ERROR(RefuseScaling(fields, kScaling, scaling));
  SWIZZLE_ASSIGN_OR_RETURN(const ConfigFields all, fields.Within(kParameters));
  SWIZZLE_RETURN_IF_ERROR(RefuseScaling(fields, kParameters, all));
  SWIZZLE_ASSIGN_OR_RETURN(const ConfigFields own, all.Within(attention));
  SWIZZLE_RETURN_IF_ERROR(RefuseScaling(fields, kParameters, own));
  if (own.Has(kTheta)) return own.Positive(kTheta, absent);
  return all.Has(kTheta) ? all.Positive(kTheta, absent) : fields.Positive(name, absent);
}

StatusOr<std::vector<bool>> ReadWindowed(const ConfigFields& fields, int64_t layers,
                                         const std::function<bool(int64_t layer)>& absent) {
  constexpr char kName[] = "layer_types";
  std::vector<bool> windowed;
  if (!fields.Has(kName)) {
    for (int64_t layer = 0; layer < layers; ++layer) windowed.push_back(absent(layer));
    return windowed;
  }
  for (const std::string& type : fields.Texts(kName)) {
    if (type != kFullAttention && type != kSlidingAttention) {
      return Unimplemented("its ", kName, " has ", ConfigFields::Shown(type), "; supported are ", kFullAttention,
                           " and ", kSlidingAttention);
    }
    windowed.push_back(type == kSlidingAttention);
  }
  if (static_cast<int64_t>(windowed.size()) == layers) return windowed;
  return InvalidArgument("its ", kName, " is ", fields.ShownOf(kName), "; it must be a list of ", layers,
                         " strings, one for each of num_hidden_layers");
}

Status CheckHeads(int64_t hidden_size, int64_t heads, std::string_view heads_field) {
  if (hidden_size % (2 * heads) == 0) return {};
  return InvalidArgument("its hidden size ", hidden_size, " is not made of heads of an even size by its ", heads_field,
                         ", ", heads);
}

}  // namespace swizzle
