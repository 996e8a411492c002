#include "model_loader/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>

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

// The components of a location that stays below its folder; none if it does not.
std::vector<std::string> Components(const std::string& location) {
  std::vector<std::string> components;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string component = location.substr(begin, end - begin);
    if (component.empty() || component == "..") return {};
    if (component != ".") components.push_back(component);
    begin = end + 1;
  }
  return components;
}

// Of the call that just failed.
Status OpenError(const std::string& location) {
  const int error = errno;
  if (error == ELOOP || error == ENOTDIR) {
    return InvalidArgument("its external file '", location,
                           "' is, or lies behind, a symbolic link or something that is no folder: "
                           "put the file itself beside the model");
  }
  if (error == ENOENT) {
    return MakeError(StatusCode::kNotFound, "its external file '", location,
                     "' is not there: copy it along with the model");
  }
  return MakeError(absl::ErrnoToStatusCode(error), "its external file '", location,
                   "' cannot be opened: ", std::strerror(error));
}

StatusOr<FileDescriptor> OpenBelow(const std::filesystem::path& folder, const std::string& location) {
  std::vector<std::string> components = Components(location);
  if (components.empty()) {
    return InvalidArgument("its external file '", location,
                           "' is not below the model's folder: it must be a relative path without '..'");
  }
  const std::string name = std::move(components.back());
  components.pop_back();
  FileDescriptor parent(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const std::string& component : components) {
    if (!parent.is_open()) break;
    parent = FileDescriptor(openat(parent.get(), component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!parent.is_open()) return OpenError(location);
  // Not blocking: a pipe would wait for its writer.
  FileDescriptor file(openat(parent.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.is_open()) return OpenError(location);
  return file;
}

bool ReadAt(const FileDescriptor& file, int64_t offset, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t read = pread(file.get(), bytes.data(), bytes.size(), offset);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(read));
    offset += read;
  }
  return true;
}

}  // namespace

StatusOr<std::vector<std::byte>> ExternalData::Read(const onnx::TensorProto& proto, int64_t bytes,
                                                    const std::string& what) {
  if (folder_.empty()) {
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
  if (const Status opened = Open(range->location); !opened.ok()) return Annotate(opened, what);
  if (range->offset > file_bytes_ || bytes > file_bytes_ - range->offset) {
    return InvalidArgument(what, " has ", bytes, " bytes at offset ", range->offset, " of its external file '",
                           location_, "', which has only ", file_bytes_, ": it is truncated, or of another model");
  }
  bytes_left_ -= bytes;
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  if (!ReadAt(file_, range->offset, data)) {
    return MakeError(StatusCode::kUnavailable, what, ": its external file '", location_,
                     "' cannot be read, or changed while it was");
  }
  return data;
}

Status ExternalData::Open(const std::string& location) {
  if (file_.is_open() && location == location_) return {};
  SWIZZLE_ASSIGN_OR_RETURN(FileDescriptor file, OpenBelow(folder_, location));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return OpenError(location);
  if (!S_ISREG(status.st_mode)) return InvalidArgument("its external file '", location, "' is not a regular file");
  if (status.st_nlink > 1) {
    return InvalidArgument("its external file '", location,
                           "' has other names (hard links), under which it may belong to somebody else: copy it");
  }
  file_ = std::move(file);
  location_ = location;
  file_bytes_ = status.st_size;
  return {};
}

}  // namespace swizzle
