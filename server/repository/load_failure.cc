#include "server/repository/load_failure.h"

#include <string>
#include <string_view>

namespace swizzle {
namespace {

std::string Shortened(std::string_view message) {
  constexpr size_t kRoomForCount = 40;
  if (message.size() <= kMostReasonBytes) return std::string(message);
  const auto is_inside = [&](size_t at) {
    return at < message.size() && (static_cast<unsigned char>(message[at]) & 0xC0) == 0x80;
  };
  size_t head = (kMostReasonBytes - kRoomForCount) / 2, tail = message.size() - head;
  while (head > 0 && is_inside(head)) --head;
  while (is_inside(tail)) ++tail;
  return Concat(std::string(message.substr(0, head)), " ... (", tail - head, " bytes left out) ... ",
                std::string(message.substr(tail)));
}

}  // namespace

Status ReasonForClients(const Status& status, const std::filesystem::path& version_folder) {
  std::string message(status.message());
  const std::filesystem::path model = version_folder.parent_path();
  for (const std::filesystem::path& prefix : {version_folder, model, model.parent_path()}) {
    const std::string path = prefix.string() + "/";
    for (size_t at; path != "/" && (at = message.find(path)) != std::string::npos;) message.erase(at, path.size());
  }
  return Status(status.code(), Shortened(message));
}

}  // namespace swizzle
