#include "model_loader/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "model_loader/files/file_kind.h"
#include "model_loader/onnx/proto_values.h"

namespace swizzle {
namespace {

struct Range {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

// In plain decimal.
StatusOr<int64_t> ParseBytes(const onnx::StringStringEntryProto& entry) {
  const std::string& text = entry.value();
  int64_t bytes = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || stop != text.data() + text.size() || bytes < 0) {
    return InvalidArgument("the ", entry.key(), " of its external data is not a number of bytes");
  }
  return bytes;
}

StatusOr<Range> ParseRange(const onnx::TensorProto& proto) {
  Range range;
  std::set<std::string> keys;
  for (const auto& entry : proto.external_data()) {
    const std::string& key = entry.key();
    SWIZZLE_RETURN_IF_ERROR(CheckName(key, "a key of its external data"));
    if (!keys.insert(key).second) return InvalidArgument("the key '", key, "' of its external data is given twice");
    if (key == "location") {
      SWIZZLE_RETURN_IF_ERROR(CheckName(entry.value(), "its external file"));
      range.location = entry.value();
    } else if (key == "offset") {
      SWIZZLE_ASSIGN_OR_RETURN(range.offset, ParseBytes(entry));
    } else if (key == "length") {
      SWIZZLE_ASSIGN_OR_RETURN(range.length, ParseBytes(entry));
    } else if (key != "checksum") {
      return Unimplemented("the key '", key, "' of its external data is not known");
    }
  }
  if (range.location.empty())
    return InvalidArgument("it lies in an external file, but the model does not say in which");
  return range;
}

}  // namespace

StatusOr<std::vector<std::byte>> ExternalData::Read(const onnx::TensorProto& proto, int64_t bytes,
                                                    const std::string& what) {
  if (folder_.path.empty() && elements_ == nullptr) {
    return Unimplemented(what,
                         " lies in an external file; save the model with its data inside "
                         "(onnx.save_model(..., save_as_external_data=False))");
  }
  const StatusOr<Range> range = ParseRange(proto);
  if (!range.ok()) return Annotate(range.status(), what);
  if (range->length.value_or(bytes) != bytes) {
    return InvalidArgument(what, " has ", *range->length, " bytes of external data, but ", bytes,
                           " by its shape and type");
  }
  if (bytes > bytes_left_) {
    return InvalidArgument(what, " has ", bytes, " bytes of external data, which takes the model above its limit; ",
                           bytes_left_, " are left");
  }
  if (elements_ != nullptr) {
    if (range->offset != 0) return InvalidArgument(what, " begins within the elements '", range->location, "'");
    auto elements = elements_(range->location, bytes);
    if (!elements.ok()) return Annotate(elements.status(), what);
    bytes_left_ -= bytes;
    return elements;
  }
  if (!file_ || range->location != file_->location()) {
    auto file = ContainedFile::Open(folder_, range->location, "its external file");
    if (!file.ok()) return Annotate(file.status(), what);
    file_ = *std::move(file);
  }
  if (range->offset > file_->bytes() || bytes > file_->bytes() - range->offset) {
    std::vector<std::byte> beginning(static_cast<size_t>(std::min<int64_t>(file_->bytes(), kFileKindBytes)));
    const std::string_view kind = file_->ReadAt(0, beginning) ? KindOfFile(beginning) : "";
    if (!kind.empty()) return InvalidArgument(what, ": its external file '", range->location, "' is ", kind);
    return InvalidArgument(what, " has ", bytes, " bytes at offset ", range->offset, " of its external file '",
                           range->location, "', which has only ", file_->bytes(),
                           ": it is truncated, or of another model");
  }
  bytes_left_ -= bytes;
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  if (!file_->ReadAt(range->offset, data)) {
    return MakeError(StatusCode::kUnavailable, what, ": its external file '", range->location,
                     "' cannot be read, or changed while it was");
  }
  return data;
}

}  // namespace swizzle
