#include "model_loader/files/read_file.h"

#include <cerrno>
#include <cstring>
#include <system_error>

namespace swizzle {

StatusOr<FileStream> OpenFile(const std::filesystem::path& file, int64_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return MakeError(StatusCode::kNotFound, "there is no such file");
  if (!std::filesystem::is_regular_file(status)) return InvalidArgument("it is not a regular file");
  FileStream opened{std::ifstream(file, std::ios::binary | std::ios::ate), 0};
  if (!opened.stream) {
    return MakeError(StatusCode::kPermissionDenied, "it cannot be opened: ", std::strerror(errno));
  }
  opened.bytes = opened.stream.tellg();
  if (opened.bytes > max_bytes) {
    return MakeError(StatusCode::kResourceExhausted, "it has ", opened.bytes, " bytes; the limit is ", max_bytes);
  }
  opened.stream.seekg(0);
  return opened;
}

Status ChangedWhileRead() { return MakeError(StatusCode::kUnavailable, "it cannot be read, or changed while it was"); }

StatusOr<std::vector<std::byte>> ReadFile(const std::filesystem::path& file, int64_t max_bytes) {
  StatusOr<FileStream> opened = OpenFile(file, max_bytes);
  if (!opened.ok()) return Annotate(opened.status(), file.string());
  std::vector<std::byte> bytes(static_cast<size_t>(opened->bytes));
  if (!opened->stream.read(reinterpret_cast<char*>(bytes.data()), opened->bytes)) {
    return Annotate(ChangedWhileRead(), file.string());
  }
  return bytes;
}

}  // namespace swizzle
