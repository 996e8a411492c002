#include "server/config/label_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "model_loader/files/contained_file.h"
#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

using Labels = std::vector<std::string>;

constexpr int64_t kMaxLabelFileBytes = 16 << 20;  // of 21,000 classes of ImageNet it is half a megabyte
constexpr size_t kMaxLabelBytes = 1024;

StatusOr<Labels> ParseLabels(std::string_view text) {
  Labels labels;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
    labels.emplace_back(line);
    if (line.size() <= kMaxLabelBytes) continue;
    return InvalidArgument("line ", labels.size(), " of its file of labels has ", line.size(), " bytes; a label has ",
                           kMaxLabelBytes, " at most");
  }
  return labels;
}

StatusOr<Labels> ReadFile(const fs::path& folder, const std::string& name) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string text,
                           ContainedFile::Read({folder, {}}, name, "its file of labels", kMaxLabelFileBytes));
  return ParseLabels(text);
}

}  // namespace

StatusOr<std::vector<ConfigNotice>> ReadLabels(const fs::path& folder, const inference::ModelConfig& config,
                                               ModelSpec& spec) {
  std::vector<ConfigNotice> notices;
  for (const inference::ModelOutput& output : config.output()) {
    const auto found = std::ranges::find(spec.outputs, output.name(), &TensorSpec::name);
    if (output.label_filename().empty() || found == spec.outputs.end()) continue;
    StatusOr<Labels> labels = ReadFile(folder, output.label_filename());
    if (labels.ok()) {
      found->labels = std::make_shared<const Labels>(*std::move(labels));
    } else if (absl::IsNotFound(labels.status())) {
      notices.push_back({"output.label_filename", Concat("there is no file '", output.label_filename(),
                                                         "': classes of '", output.name(), "' have no labels")});
    } else {
      return Annotate(labels.status(), Concat("config.pbtxt: output '", output.name(), "'"));
    }
  }
  return notices;
}

}  // namespace swizzle
