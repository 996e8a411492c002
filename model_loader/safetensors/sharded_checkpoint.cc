#include "model_loader/safetensors/sharded_checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/files/contained_file.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/files/read_file.h"
#include "model_loader/safetensors/strict_json.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 36;
constexpr int64_t kMaxIndexBytes = int64_t{1} << 26;

using Shards = std::map<std::string, std::set<std::string>>;  // file name -> names of its tensors

StatusOr<Shards> ParseIndex(std::string_view text) {
  SWIZZLE_ASSIGN_OR_RETURN(const nlohmann::json index, ParseStrictJson(text));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    return InvalidArgument("it has no weight_map, which says in which file each tensor is");
  }
  Shards shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return InvalidArgument("the weight_map's '", tensor, "' is no file name");
    const auto& name = file.get_ref<const std::string&>();
    SWIZZLE_RETURN_IF_ERROR(CheckName(name, Concat("the shard of '", tensor, "'")));
    if (name.find('/') != std::string::npos || !name.ends_with(".safetensors")) {
      return InvalidArgument("the shard '", name, "' of '", tensor,
                             "' must be the plain name of a .safetensors file beside the index");
    }
    shards[name].insert(tensor);
  }
  return shards;
}

StatusOr<std::vector<std::byte>> ReadShard(const ModelFolder& folder, const std::string& name) {
  SWIZZLE_ASSIGN_OR_RETURN(const ContainedFile file, ContainedFile::Open(folder, name, "the shard"));
  if (file.bytes() > kMaxFileBytes) {
    return MakeError(StatusCode::kResourceExhausted, "the shard '", name, "' has ", file.bytes(),
                     " bytes; the limit is ", kMaxFileBytes);
  }
  std::vector<std::byte> bytes(static_cast<size_t>(file.bytes()));
  if (!file.ReadAt(0, bytes)) {
    return MakeError(StatusCode::kUnavailable, "the shard '", name, "' cannot be read, or changed while it was");
  }
  return bytes;
}

// Moves the tensors of a shard to the others, if they are just those that the index expects.
Status AddShard(std::span<const std::byte> bytes, const std::set<std::string>& expected, TensorMap& tensors) {
  SWIZZLE_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(bytes));
  for (const std::string& name : expected) {
    if (!file.tensors.contains(name))
      return InvalidArgument("it lacks the tensor '", name, "', which the index says it has");
  }
  for (const auto& [name, view] : file.tensors) {
    if (!expected.contains(name)) {
      return InvalidArgument("it has the tensor '", name, "', which by the index it has not");
    }
    tensors.emplace(name, CopyOf(view));
  }
  return {};
}

StatusOr<TensorMap> ReadShards(const std::filesystem::path& index) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(index, kMaxIndexBytes));
  const auto shards = ParseIndex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!shards.ok()) return Annotate(shards.status(), index.string());
  const ModelFolder folder = ModelFolder::Of(index);
  TensorMap tensors;
  for (const auto& [name, expected] : *shards) {
    const auto shard = ReadShard(folder, name);
    if (!shard.ok()) return Annotate(shard.status(), index.string());
    SWIZZLE_RETURN_IF_ERROR(Annotate(AddShard(*shard, expected, tensors), (folder.path / name).string()));
  }
  return tensors;
}

}  // namespace

StatusOr<TensorMap> ReadTensors(const std::filesystem::path& file) {
  if (file.filename().string().ends_with(kIndexEnding)) return ReadShards(file);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(file, kMaxFileBytes));
  const auto parsed = ParseSafetensors(bytes);
  if (!parsed.ok()) return Annotate(parsed.status(), file.string());
  TensorMap tensors;
  for (const auto& [name, view] : parsed->tensors) tensors.emplace(name, CopyOf(view));
  return tensors;
}

}  // namespace swizzle
