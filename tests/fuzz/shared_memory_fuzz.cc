// What clients may ask of shared memory, one call after another: regions are registered, listed, read, written and let
// go of, while the memory behind them shrinks and grows. An input is a list of calls: a byte that says which, one that
// says how long it is, and its bytes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/files/file_descriptor.h"
#include "server/rpc/shared_memory.h"
#include "tests/fuzz/quiet_protobuf.h"

namespace swizzle {
namespace {

constexpr char kPrefix[] = "swizzle-fuzz-";
constexpr int64_t kMostBytes = 8192, kMostInFile = 4096;
constexpr int64_t kMostRegions = 256;

// Memory of the client's, which anybody who fuzzes beside this one has, too.
const FileDescriptor& Memory() {
  static const FileDescriptor& file =
      *new FileDescriptor(shm_open("/swizzle-fuzz-a", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  SWIZZLE_CHECK(file.is_open());
  return file;
}

void Resize(int64_t bytes) { SWIZZLE_CHECK(ftruncate(Memory().get(), bytes) == 0); }

template <typename Message>
Message Parsed(std::string_view bytes) {
  Message message;
  (void)message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  return message;
}

// Memory of a GPU: as much as its handle is long, times 64.
class DeviceMemory final : public SharedDeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) : memory_(bytes) {}
  int64_t bytes() const override { return static_cast<int64_t>(memory_.size()); }
  Status Read(int64_t offset, std::span<std::byte> to) const override {
    std::copy_n(memory_.begin() + offset, to.size(), to.begin());
    return absl::OkStatus();
  }
  Status Write(int64_t offset, std::span<const std::byte> from) const override {
    SWIZZLE_CHECK(offset + static_cast<int64_t>(from.size()) <= bytes());
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte> memory_;
};

StatusOr<std::unique_ptr<SharedDeviceMemory>> OpenDevice(int64_t device, std::string_view handle) {
  if (device != 0) return InvalidArgument("there is no such GPU");
  return std::make_unique<DeviceMemory>(handle.size() * 64);
}

void CheckBounds(const SharedRegions& regions) {
  inference::SystemSharedMemoryStatusResponse all;
  inference::CudaSharedMemoryStatusResponse of_devices;
  SWIZZLE_CHECK(regions.Describe("", all).ok() && regions.Describe("", of_devices).ok());
  uint64_t bytes = 0;
  for (const auto& [name, region] : of_devices.regions()) {
    SWIZZLE_CHECK(region.byte_size() > 0 && region.device_id() == 0);
    bytes += region.byte_size();
  }
  for (const auto& [name, region] : all.regions()) {
    SWIZZLE_CHECK(region.byte_size() > 0 && region.key().find(kPrefix) <= 1);
    SWIZZLE_CHECK(region.byte_size() <= uint64_t{kMostInFile} && region.offset() <= uint64_t{kMostInFile});
    bytes += region.byte_size();
  }
  SWIZZLE_CHECK(bytes <= uint64_t{kMostBytes} && all.regions_size() + of_devices.regions_size() <= kMostRegions);
}

// As a request's tensor that names a region.
void UseTensor(const SharedRegions& regions, const inference::ModelInferRequest& request) {
  SWIZZLE_CHECK(SharedInputBytes(request) >= 0);
  for (const auto& input : request.inputs()) {
    const auto found = regions.Find(input.parameters());
    if (!found.ok() || found->region == nullptr) continue;
    SWIZZLE_CHECK(found->offset >= 0 && found->bytes <= found->region->bytes() - found->offset);
    std::vector<std::byte> bytes(static_cast<size_t>(found->bytes));
    if (!found->region->Read(found->offset, bytes).ok()) continue;
    // Nobody shrinks it here meanwhile.
    SWIZZLE_CHECK(bytes.empty() || found->region->Write(found->offset, bytes).ok());
    inference::ModelInferResponse response;
    found->NameIn(*response.add_outputs()->mutable_parameters());
  }
}

void Call(SharedRegions& regions, int which, std::string_view bytes) {
  inference::SystemSharedMemoryStatusResponse response;
  switch (which % 8) {
    case 0:
      regions.Register(Parsed<inference::SystemSharedMemoryRegisterRequest>(bytes)).IgnoreError();
      break;
    case 1:
      SWIZZLE_CHECK(regions.Unregister(Parsed<inference::SystemSharedMemoryUnregisterRequest>(bytes)).ok());
      break;
    case 2:
      regions.Describe(std::string(bytes), response).IgnoreError();
      break;
    case 3:
      UseTensor(regions, Parsed<inference::ModelInferRequest>(bytes));
      break;
    case 5:
      regions.Register(Parsed<inference::CudaSharedMemoryRegisterRequest>(bytes)).IgnoreError();
      break;
    case 6:
      SWIZZLE_CHECK(regions.Unregister(Parsed<inference::CudaSharedMemoryUnregisterRequest>(bytes)).ok());
      break;
    default:
      Resize(bytes.empty() ? 0 : std::min<int64_t>(int64_t{static_cast<unsigned char>(bytes[0])} * 32, kMostInFile));
  }
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  swizzle::Resize(swizzle::kMostInFile);
  swizzle::SharedRegions regions(swizzle::kPrefix, swizzle::kMostBytes);
  regions.ServeDevices(swizzle::OpenDevice);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 2) {
    const size_t length = std::min<size_t>(static_cast<unsigned char>(rest[1]), rest.size() - 2);
    swizzle::Call(regions, static_cast<unsigned char>(rest[0]), rest.substr(2, length));
    swizzle::CheckBounds(regions);
    rest.remove_prefix(2 + length);
  }
  return 0;
}
