#include "model_loader/pruning/score_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

constexpr int64_t kMostFiles = 65536;
constexpr float kBeyondFinite = 1 << 20;  // more than a vector or a block has entries; sums in FP64 still show the rest

template <typename T>
std::vector<float> Converted(const NpyArray& array) {
  std::vector<T> elements(array.bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), array.bytes.data(), array.bytes.size());
  return {elements.begin(), elements.end()};
}

// So that sums and means of scores can be compared.
void ClampInfinities(std::span<float> scores) {
  float largest = 0;
  for (const float score : scores) largest = std::max(largest, std::isinf(score) ? 0.0f : std::abs(score));
  if (largest == 0) largest = 1;
  const float bound = std::min(largest * kBeyondFinite, std::numeric_limits<float>::max());
  for (float& score : scores) score = std::clamp(score, -bound, bound);
}

StatusOr<NpyArrays> ReadFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".npy") files.push_back(it->path());
    if (files.size() > kMostFiles) return InvalidArgument(folder.string(), ": more than ", kMostFiles, " .npy files");
  }
  if (error) return InvalidArgument(folder.string(), ": ", error.message());
  NpyArrays arrays;
  for (const std::filesystem::path& file : files) {
    SWIZZLE_ASSIGN_OR_RETURN(arrays[file.stem().string()], ReadNpy(file));
  }
  return arrays;
}

std::string AsFileName(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name;
}

}  // namespace

StatusOr<ScoreFile> ScoreFile::Read(const std::filesystem::path& file) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(file, error);
  StatusOr<NpyArrays> arrays = is_folder ? ReadFolder(file) : ReadNpz(file);
  if (!arrays.ok()) return arrays.status();
  return ScoreFile(*std::move(arrays));
}

const NpyArray* ScoreFile::Find(std::span<const std::string> names) {
  for (const std::string& name : names) {
    auto found = arrays_.find(name);
    if (found == arrays_.end()) found = arrays_.find(AsFileName(name));
    if (found == arrays_.end()) continue;
    used_.insert(found->first);
    return &found->second;
  }
  return nullptr;
}

StatusOr<std::vector<float>> ScoreFile::Of(std::span<const std::string> names, const Shape& shape) {
  const NpyArray* found = Find(names);
  const std::string what = Concat("the scores of weight ", QuotedName(names.back()));
  if (found == nullptr) return InvalidArgument(what, " are missing; skip it, or save an array of that name");
  const NpyArray& array = *found;
  if (array.shape != shape) {
    return InvalidArgument(what, " have shape ", ShapeText(array.shape), "; the weight has ", ShapeText(shape));
  }
  if (array.dtype != DType::kFloat32 && array.dtype != DType::kFloat64) {
    return InvalidArgument(what, " are ", DTypeName(array.dtype), "; save array.astype('<f4')");
  }
  std::vector<float> scores = array.dtype == DType::kFloat32 ? Converted<float>(array) : Converted<double>(array);
  const auto wrong = std::ranges::find_if(scores, [](float score) { return std::isnan(score); });
  if (wrong != scores.end()) return InvalidArgument(what, ": element ", wrong - scores.begin(), " is not a number");
  ClampInfinities(scores);
  return scores;
}

Status ScoreFile::CheckAllUsed() const {
  for (const auto& [name, array] : arrays_) {
    if (!used_.contains(name)) return InvalidArgument("scores ", QuotedName(name), " are of no weight that is pruned");
  }
  return {};
}

}  // namespace swizzle
