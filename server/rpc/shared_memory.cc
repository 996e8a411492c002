#include "server/rpc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/rpc/infer_parameters.h"

namespace swizzle {
namespace {

using inference::InferParameter;
using Parameters = SharedBytes::Parameters;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr size_t kMostRegions = 256;  // each is an open file
constexpr char kRegionKey[] = "shared_memory_region", kBytesKey[] = "shared_memory_byte_size",
               kOffsetKey[] = "shared_memory_offset";

int64_t AtMost(uint64_t value) { return static_cast<int64_t>(std::min<uint64_t>(value, uint64_t{kMost})); }

// Of a parameter that is a number from 0 on; `absent` where it is not there.
StatusOr<int64_t> NumberOf(const Parameters& parameters, const char* key, int64_t absent) {
  const auto found = parameters.find(key);
  if (found == parameters.end()) return absent;
  SWIZZLE_ASSIGN_OR_RETURN(const uint64_t number, UnsignedParameter(key, found->second));
  return AtMost(number);
}

int64_t SizeOf(const FileDescriptor& file) {
  struct stat found = {};
  return fstat(file.get(), &found) == 0 ? static_cast<int64_t>(found.st_size) : 0;
}

// Whether `bytes` from `offset` on end within `all`. None of them is negative.
bool IsWithin(int64_t offset, int64_t bytes, int64_t all) { return bytes <= all && offset <= all - bytes; }

}  // namespace

void SharedBytes::NameIn(Parameters& parameters) const {
  parameters[kRegionKey].set_string_param(name);
  parameters[kBytesKey].set_int64_param(bytes);
  if (offset != 0) parameters[kOffsetKey].set_int64_param(offset);
}

Status SharedRegion::Check(int64_t offset, int64_t bytes) const {
  if (offset >= 0 && bytes >= 0 && IsWithin(offset, bytes, bytes_)) return absl::OkStatus();
  return InvalidArgument("shared memory region ", QuotedName(name_), " has ", bytes_, " bytes; ", bytes, " from byte ",
                         offset, " on are not all in it");
}

Status SharedRegion::Shrunk() const {
  return InvalidArgument("shared memory region ", QuotedName(name_),
                         " is smaller than when it was registered; do not shrink it while it is");
}

Status SharedRegion::Read(int64_t offset, std::span<std::byte> to) const {
  SWIZZLE_RETURN_IF_ERROR(Check(offset, static_cast<int64_t>(to.size())));
  for (off_t at = offset_ + offset; !to.empty();) {
    const ssize_t count = pread(file_.get(), to.data(), to.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Shrunk();
    to = to.subspan(static_cast<size_t>(count));
    at += count;
  }
  return absl::OkStatus();
}

// Writing beyond its end would make it larger again.
Status SharedRegion::Write(int64_t offset, std::span<const std::byte> from) const {
  SWIZZLE_RETURN_IF_ERROR(Check(offset, static_cast<int64_t>(from.size())));
  off_t at = offset_ + offset;
  if (!IsWithin(at, static_cast<int64_t>(from.size()), SizeOf(file_))) return Shrunk();
  while (!from.empty()) {
    const ssize_t count = pwrite(file_.get(), from.data(), from.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return MakeError(StatusCode::kResourceExhausted, "shared memory region ", QuotedName(name_),
                       " cannot be written: there is no memory for it");
    }
    from = from.subspan(static_cast<size_t>(count));
    at += count;
  }
  return absl::OkStatus();
}

Status SharedRegions::CheckEnabled() const {
  if (enabled()) return absl::OkStatus();
  return Unimplemented("this server takes no shared memory; send tensors in messages");
}

SharedRegions::Load SharedRegions::load() const {
  const MutexLock lock(mutex_);
  return {static_cast<int64_t>(regions_.size()), registered_bytes_, enabled() ? most_bytes_ : 0};
}

// A plain name below /dev/shm, with or without the slash that shm_open wants.
StatusOr<FileDescriptor> SharedRegions::Open(const std::string& key) const {
  const std::string name = key.starts_with('/') ? key.substr(1) : key;
  if (!name.starts_with(prefix_) || name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    return InvalidArgument("shared memory ", QuotedName(key), " may not be registered: its name has to begin with ",
                           QuotedName(prefix_), ", and has no further slash");
  }
  FileDescriptor file(shm_open(("/" + name).c_str(), O_RDWR | O_CLOEXEC, 0));
  struct stat found = {};
  if (file.is_open() && fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode)) return file;
  return InvalidArgument("shared memory ", QuotedName(key),
                         " cannot be opened; is it there, and may the server's user ", "read and write it?");
}

Status SharedRegions::Register(const inference::SystemSharedMemoryRegisterRequest& request) {
  SWIZZLE_RETURN_IF_ERROR(CheckEnabled());
  SWIZZLE_RETURN_IF_ERROR(CheckName(request.name(), "the name of a shared memory region"));
  SWIZZLE_ASSIGN_OR_RETURN(FileDescriptor file, Open(request.key()));
  const int64_t offset = AtMost(request.offset()), bytes = AtMost(request.byte_size());
  if (const int64_t all = SizeOf(file); bytes == 0 || !IsWithin(offset, bytes, all)) {
    return InvalidArgument("shared memory ", QuotedName(request.key()), " has ", all, " bytes; a region of ", bytes,
                           " from byte ", offset, " on is not in it");
  }
  const MutexLock lock(mutex_);
  if (regions_.contains(request.name())) {
    return MakeError(StatusCode::kAlreadyExists, "shared memory region ", QuotedName(request.name()),
                     " is registered already; unregister it first");
  }
  if (regions_.size() >= kMostRegions || !IsWithin(registered_bytes_, bytes, most_bytes_)) {
    return MakeError(StatusCode::kResourceExhausted, "there are ", regions_.size(), " shared memory regions of ",
                     registered_bytes_, " bytes; the server takes ", kMostRegions, " of ", most_bytes_, " together");
  }
  regions_[request.name()] =
      std::make_shared<const SharedRegion>(request.name(), request.key(), std::move(file), offset, bytes);
  registered_bytes_ += bytes;
  return absl::OkStatus();
}

Status SharedRegions::Unregister(const std::string& name) {
  SWIZZLE_RETURN_IF_ERROR(CheckEnabled());
  const MutexLock lock(mutex_);
  std::erase_if(regions_, [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!name.empty() && entry.first != name) return false;
    registered_bytes_ -= entry.second->bytes();
    return true;
  });
  return absl::OkStatus();
}

Status SharedRegions::Describe(const std::string& name, inference::SystemSharedMemoryStatusResponse& response) const {
  SWIZZLE_RETURN_IF_ERROR(CheckEnabled());
  const MutexLock lock(mutex_);
  for (const auto& [known, region] : regions_) {
    if (!name.empty() && known != name) continue;
    auto& its = (*response.mutable_regions())[known];
    its.set_name(known);
    its.set_key(region->key());
    its.set_offset(static_cast<uint64_t>(region->offset()));
    its.set_byte_size(static_cast<uint64_t>(region->bytes()));
  }
  if (name.empty() || !response.regions().empty()) return absl::OkStatus();
  return MakeError(StatusCode::kNotFound, "there is no shared memory region ", QuotedName(name));
}

StatusOr<SharedBytes> SharedRegions::Find(const Parameters& parameters) const {
  SharedBytes shared;
  const auto found = parameters.find(kRegionKey);
  if (found == parameters.end()) return shared;
  SWIZZLE_RETURN_IF_ERROR(CheckEnabled());
  shared.name = found->second.string_param();
  SWIZZLE_ASSIGN_OR_RETURN(shared.offset, NumberOf(parameters, kOffsetKey, 0));
  SWIZZLE_ASSIGN_OR_RETURN(shared.bytes, NumberOf(parameters, kBytesKey, -1));
  if (shared.bytes < 0) return InvalidArgument("parameter '", kBytesKey, "' is missing beside '", kRegionKey, "'");
  {
    const MutexLock lock(mutex_);
    if (const auto region = regions_.find(shared.name); region != regions_.end()) shared.region = region->second;
  }
  if (shared.region == nullptr) {
    return InvalidArgument("there is no shared memory region ", QuotedName(shared.name), "; register it first");
  }
  SWIZZLE_RETURN_IF_ERROR(shared.region->Check(shared.offset, shared.bytes));
  return shared;
}

int64_t SharedInputBytes(const inference::ModelInferRequest& request) {
  int64_t all = 0;
  for (const auto& input : request.inputs()) {
    if (!input.parameters().contains(kRegionKey)) continue;
    const StatusOr<int64_t> bytes = NumberOf(input.parameters(), kBytesKey, 0);
    if (bytes.ok() && __builtin_add_overflow(all, *bytes, &all)) return kMost;
  }
  return all;
}

}  // namespace swizzle
