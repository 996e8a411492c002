#include "server/config/config_file.h"

#include <cstddef>
#include <system_error>
#include <vector>

#include "model_loader/files/read_file.h"
#include "server/config/model_config.h"

namespace swizzle {

namespace fs = std::filesystem;

StatusOr<std::optional<inference::ModelConfig>> ReadModelConfig(const fs::path& folder, std::string_view name) {
  constexpr int64_t kMaxConfigBytes = 1 << 20;
  const fs::path file = folder / "config.pbtxt";
  std::error_code error;
  const fs::file_status found = fs::symlink_status(file, error);
  if (found.type() == fs::file_type::not_found) return std::nullopt;
  if (fs::is_symlink(found) && !fs::exists(file, error)) {
    return MakeError(StatusCode::kFailedPrecondition, "config.pbtxt is a link that leads to no file",
                     error ? Concat(" (", error.message(), ")") : "", "; mend it or remove it");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(file, kMaxConfigBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SWIZZLE_ASSIGN_OR_RETURN(inference::ModelConfig config, ParseModelConfig(text, name));
  return config;
}

}  // namespace swizzle
