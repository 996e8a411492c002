#include "model_loader/safetensors/compression_config.h"

#include <optional>
#include <string>

#include "model_loader/files/printable_name.h"
#include "model_loader/safetensors/strict_json.h"

namespace swizzle {
namespace {

using Json = nlohmann::json;

constexpr char kFix[] =
    ": save the checkpoint dense, with sparse-bitmask or sparse-24-bitmask, or with int-quantized weights of 8 bits";

// Text of a file, for a message.
std::string Shown(const std::string& text) {
  return CheckName(text, "").ok() ? Concat("'", text, "'") : std::string("that is not printable");
}

bool IsAbsent(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null();
}

// The string in `object`, empty if it is absent or null.
StatusOr<std::string> StringIn(const Json& object, const char* key) {
  if (IsAbsent(object, key)) return std::string();
  if (!object[key].is_string()) return InvalidArgument("its '", key, "' is not a string");
  return object[key].get<std::string>();
}

// The object in `object`; empty if it is absent or null.
StatusOr<Json> ObjectIn(const Json& object, const char* key) {
  if (IsAbsent(object, key)) return Json::object();
  if (!object[key].is_object()) return InvalidArgument("its '", key, "' is not an object");
  return object[key];
}

// That numbers of `args`, for which the message has `what`, are integers of at most 8 bits, or of just so many.
Status CheckNumbers(const Json& args, const char* what, bool all_bits) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string type, StringIn(args, "type"));
  if (!type.empty() && type != "int") {
    return Unimplemented("its ", what, " are of the type ", Shown(type), ", which is not supported", kFix);
  }
  constexpr int64_t kMostBits = 8;
  if (IsAbsent(args, "num_bits")) return {};
  const Json& bits = args["num_bits"];
  const bool fits = bits.is_number_unsigned() && bits.get<uint64_t>() <= kMostBits;
  if (fits && bits.get<uint64_t>() >= (all_bits ? kMostBits : 1)) return {};
  return Unimplemented("its ", what, " have another number of bits than ", kMostBits, ", which is not supported", kFix);
}

// Of one group's `input_activations`.
StatusOr<ActivationRounding> RoundingOf(const Json& activations) {
  if (activations.empty()) return ActivationRounding::kNone;
  SWIZZLE_RETURN_IF_ERROR(CheckNumbers(activations, "activations", /*all_bits=*/true));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string strategy, StringIn(activations, "strategy"));
  const bool absent = IsAbsent(activations, "dynamic");
  if (!absent && !activations["dynamic"].is_boolean()) {
    return Unimplemented("its activations are neither dynamic nor static, which is not supported", kFix);
  }
  const bool dynamic = !absent && activations["dynamic"].get<bool>();
  if (strategy.empty() || strategy == "tensor" || (dynamic && strategy == "token")) {
    return dynamic ? ActivationRounding::kByToken : ActivationRounding::kByScale;
  }
  return Unimplemented("its activations are quantised by the strategy ", Shown(strategy), ", which is not supported",
                       kFix);
}

StatusOr<ActivationRounding> RoundingOfGroup(const Json& group) {
  if (!group.is_object()) return InvalidArgument("it has a group in its 'config_groups' that is not an object");
  SWIZZLE_ASSIGN_OR_RETURN(const std::string format, StringIn(group, "format"));
  if (!format.empty() && format != "int-quantized" && format != "naive-quantized") {
    return Unimplemented("a group of layers is quantised in the format ", Shown(format), ", which is not supported",
                         kFix);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Json outputs, ObjectIn(group, "output_activations"));
  if (!outputs.empty()) return Unimplemented("layers' outputs are quantised, which is not supported", kFix);
  SWIZZLE_ASSIGN_OR_RETURN(const Json weights, ObjectIn(group, "weights"));
  if (weights.empty()) return Unimplemented("weights are not quantised, but the rest is, which is not supported", kFix);
  SWIZZLE_RETURN_IF_ERROR(CheckNumbers(weights, "weights", /*all_bits=*/false));
  SWIZZLE_ASSIGN_OR_RETURN(const Json inputs, ObjectIn(group, "input_activations"));
  return RoundingOf(inputs);
}

Status ReadGroups(const Json& groups, Compression& compression) {
  std::optional<ActivationRounding> rounding;
  for (const auto& [name, group] : groups.items()) {
    SWIZZLE_ASSIGN_OR_RETURN(const ActivationRounding of_group, RoundingOfGroup(group));
    if (rounding && *rounding != of_group) {
      return Unimplemented("groups of layers differ in how they quantise activations, which is not supported", kFix);
    }
    rounding = of_group;
  }
  compression.quantised = true;
  compression.activations = rounding.value_or(ActivationRounding::kNone);
  return {};
}

Status ReadQuantisation(const Json& config, Compression& compression) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string format, StringIn(config, "format"));
  SWIZZLE_ASSIGN_OR_RETURN(const Json groups, ObjectIn(config, "config_groups"));
  if (groups.empty() && (format.empty() || format == "dense")) return {};
  if (format != "int-quantized" && format != "naive-quantized") {
    return Unimplemented("the checkpoint is quantised, in the format ", Shown(format.empty() ? "unnamed" : format),
                         ", which is not supported", kFix);
  }
  if (!IsAbsent(config, "kv_cache_scheme")) {
    return Unimplemented("keys and values are quantised, which is not supported", kFix);
  }
  return ReadGroups(groups, compression);
}

StatusOr<SparsityFormat> ReadSparsity(const Json& config) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json sparsity, ObjectIn(config, "sparsity_config"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string format, StringIn(sparsity, "format"));
  if (format.empty() || format == "dense") return SparsityFormat::kDense;
  if (format == "sparse-bitmask") return SparsityFormat::kBitmask;
  if (format == "sparse-24-bitmask") return SparsityFormat::kTwoFourBitmask;
  return Unimplemented("the checkpoint's weights are compressed in the format ", Shown(format),
                       ", which is not supported", kFix);
}

StatusOr<Compression> CompressionOf(const Json& config) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string method, StringIn(config, "quant_method"));
  if (!method.empty() && method != "compressed-tensors" && method != "sparseml") {
    return Unimplemented("the checkpoint is quantised by the method ", Shown(method), ", which is not supported", kFix);
  }
  Compression compression;
  SWIZZLE_RETURN_IF_ERROR(ReadQuantisation(config, compression));
  SWIZZLE_ASSIGN_OR_RETURN(const Json transform, ObjectIn(config, "transform_config"));
  if (!transform.empty())
    return Unimplemented("the checkpoint's weights are transformed, which is not supported", kFix);
  SWIZZLE_ASSIGN_OR_RETURN(compression.sparsity, ReadSparsity(config));
  return compression;
}

}  // namespace

StatusOr<Compression> ReadCompression(std::string_view config) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json json, ParseStrictJson(config));
  SWIZZLE_ASSIGN_OR_RETURN(const Json newer, ObjectIn(json, "quantization_config"));
  SWIZZLE_ASSIGN_OR_RETURN(const Json older, ObjectIn(json, "compression_config"));
  if (!newer.empty() && !older.empty()) {
    return InvalidArgument("it has both a quantization_config and a compression_config; keep one");
  }
  auto compression = CompressionOf(newer.empty() ? older : newer);
  if (!compression.ok()) {
    return Annotate(compression.status(), newer.empty() ? "compression_config" : "quantization_config");
  }
  return compression;
}

}  // namespace swizzle
