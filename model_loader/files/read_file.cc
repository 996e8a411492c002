#include "model_loader/files/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace swizzle {

StatusOr<std::vector<std::byte>> ReadFile(const std::filesystem::path& file, int64_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status))
    return MakeError(StatusCode::kNotFound, file.string(), ": there is no such file");
  if (!std::filesystem::is_regular_file(status)) return InvalidArgument(file.string(), ": it is not a regular file");
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) {
    return MakeError(StatusCode::kPermissionDenied, file.string(), ": it cannot be opened: ", std::strerror(errno));
  }
  const int64_t size = stream.tellg();
  if (size > max_bytes) {
    return MakeError(StatusCode::kResourceExhausted, file.string(), ": it has ", size, " bytes; the limit is ",
                     max_bytes);
  }
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  stream.seekg(0);
  if (!stream.read(reinterpret_cast<char*>(bytes.data()), size)) {
    return MakeError(StatusCode::kUnavailable, file.string(), ": it cannot be read, or changed while it was");
  }
  return bytes;
}

}  // namespace swizzle
