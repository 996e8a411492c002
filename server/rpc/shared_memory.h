// Regions of shared memory that clients on the same host have registered, as in Triton: inputs are read from them, and
// outputs written to them, instead of going through messages. They are POSIX's (/dev/shm), of names with the operator's
// prefix, or lie on a GPU, where the operator allows it.
//
// Their client may change them at any time: a request is checked and computed on a copy that stays as it is.
#ifndef SWIZZLE_SERVER_RPC_SHARED_MEMORY_H_
#define SWIZZLE_SERVER_RPC_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "server/rpc/shared_storage.h"

namespace swizzle {

// One region. Thread-safe; lasts as long as a request uses it.
class SharedRegion {
 public:
  // Where it is, as the client said.
  struct InFile {
    std::string key;
    int64_t offset = 0;
  };
  struct OnDevice {
    int64_t device = 0;
  };
  using Place = std::variant<InFile, OnDevice>;

  SharedRegion(std::string name, Place place, std::unique_ptr<SharedStorage> storage, int64_t bytes)
      : name_(std::move(name)), place_(std::move(place)), storage_(std::move(storage)), bytes_(bytes) {}

  const Place& place() const { return place_; }
  int64_t bytes() const { return bytes_; }

  // INVALID_ARGUMENT, naming the region, unless so many bytes from `offset` on are within it.
  Status Check(int64_t offset, int64_t bytes) const;
  // Likewise, or if the client has shrunk it.
  Status Read(int64_t offset, std::span<std::byte> to) const;
  Status Write(int64_t offset, std::span<const std::byte> from) const;

 private:
  Status Name(const Status& status) const;

  const std::string name_;
  const Place place_;
  const std::unique_ptr<SharedStorage> storage_;
  const int64_t bytes_;
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

  // Memory of GPUs may be registered as well, from now on. REQUIRES: no call has come.
  void ServeDevices(OpenDeviceMemory open) { open_device_ = std::move(open); }

  bool serves_files() const { return !prefix_.empty(); }
  bool serves_devices() const { return open_device_ != nullptr; }
  bool enabled() const { return serves_files() || serves_devices(); }

  struct Load {
    int64_t regions = 0, bytes = 0, bytes_limit = 0;
  };
  Load load() const;  // zeros unless enabled

  // UNIMPLEMENTED unless regions of this kind are served, like the others.
  Status Register(const inference::SystemSharedMemoryRegisterRequest& request);
  Status Register(const inference::CudaSharedMemoryRegisterRequest& request);
  // Of its kind. Empty: all. One that is not there is left alone.
  Status Unregister(const inference::SystemSharedMemoryUnregisterRequest& request);
  Status Unregister(const inference::CudaSharedMemoryUnregisterRequest& request);
  Status Describe(const std::string& name, inference::SystemSharedMemoryStatusResponse& response) const;
  Status Describe(const std::string& name, inference::CudaSharedMemoryStatusResponse& response) const;

  // What the parameters of a tensor say. Nothing is in it where they name no region. INVALID_ARGUMENT for one that is
  // not there, or does not hold those bytes.
  StatusOr<SharedBytes> Find(const SharedBytes::Parameters& parameters) const;

 private:
  Status CheckFiles() const;
  Status CheckDevices() const;
  Status Add(const std::string& name, SharedRegion::Place place, std::unique_ptr<SharedStorage> storage, int64_t bytes);
  template <typename Kind>
  void Remove(const std::string& name);
  template <typename Kind, typename Response, typename Fill>
  Status DescribeAll(const std::string& name, Response& response, Fill fill) const;

  const std::string prefix_;
  const int64_t most_bytes_;
  OpenDeviceMemory open_device_;  // null: GPUs' memory is not served
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_ ABSL_GUARDED_BY(mutex_);
  int64_t registered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What the inputs of a request say that they have in shared memory, at most the largest number.
int64_t SharedInputBytes(const inference::ModelInferRequest& request);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_SHARED_MEMORY_H_
