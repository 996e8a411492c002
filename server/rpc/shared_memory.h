// Regions of POSIX shared memory (/dev/shm) that clients on the same host have registered, as in Triton: inputs are
// read from them, and outputs written to them, instead of going through messages.
//
// They are the client's, who may change, shrink or unlink them at any time. So they are never mapped: bytes are copied
// by pread and pwrite, which find out what is missing where a mapping would end the process (SIGBUS), and a request is
// checked and computed on a copy that stays as it is. Only names with the operator's prefix are opened.
#ifndef SWIZZLE_SERVER_RPC_SHARED_MEMORY_H_
#define SWIZZLE_SERVER_RPC_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "model_loader/files/file_descriptor.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {

// One region. Thread-safe; lasts as long as a request uses it.
class SharedRegion {
 public:
  SharedRegion(std::string name, std::string key, FileDescriptor file, int64_t offset, int64_t bytes)
      : name_(std::move(name)), key_(std::move(key)), file_(std::move(file)), offset_(offset), bytes_(bytes) {}

  const std::string& key() const { return key_; }
  int64_t offset() const { return offset_; }
  int64_t bytes() const { return bytes_; }

  // INVALID_ARGUMENT, naming the region, unless so many bytes from `offset` on are within it.
  Status Check(int64_t offset, int64_t bytes) const;
  // Likewise, or if the client has shrunk it.
  Status Read(int64_t offset, std::span<std::byte> to) const;
  Status Write(int64_t offset, std::span<const std::byte> from) const;

 private:
  Status Shrunk() const;

  const std::string name_, key_;
  const FileDescriptor file_;
  const int64_t offset_, bytes_;  // in the file
};

// Bytes of a region, which were found to be within it.
struct SharedBytes {
  using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

  std::shared_ptr<const SharedRegion> region;  // null: not in shared memory
  std::string name;
  int64_t offset = 0, bytes = 0;

  // Has the parameters of an output say where it is, as those of its request did.
  void NameIn(Parameters& parameters) const;
};

// Those of the server, of all clients together, as Triton's are. Thread-safe.
class SharedRegions {
 public:
  // Names of shared memory that begin with `prefix` may be registered, none where it is empty; `most_bytes` together.
  SharedRegions(std::string prefix, int64_t most_bytes) : prefix_(std::move(prefix)), most_bytes_(most_bytes) {}

  bool enabled() const { return !prefix_.empty(); }

  struct Load {
    int64_t regions = 0, bytes = 0, bytes_limit = 0;
  };
  Load load() const;  // zeros unless enabled

  // UNIMPLEMENTED unless enabled, like the others.
  Status Register(const inference::SystemSharedMemoryRegisterRequest& request);
  // Empty: all. One that is not there is left alone.
  Status Unregister(const std::string& name);
  Status Describe(const std::string& name, inference::SystemSharedMemoryStatusResponse& response) const;

  // What the parameters of a tensor say. Nothing is in it where they name no region. INVALID_ARGUMENT for one that is
  // not there, or does not hold those bytes.
  StatusOr<SharedBytes> Find(const SharedBytes::Parameters& parameters) const;

 private:
  Status CheckEnabled() const;
  StatusOr<FileDescriptor> Open(const std::string& key) const;

  const std::string prefix_;
  const int64_t most_bytes_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_ ABSL_GUARDED_BY(mutex_);
  int64_t registered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What the inputs of a request say that they have in shared memory, at most the largest number.
int64_t SharedInputBytes(const inference::ModelInferRequest& request);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_SHARED_MEMORY_H_
