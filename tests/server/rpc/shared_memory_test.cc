#include "server/rpc/shared_memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;

// Memory of a GPU, as a client would have it.
class FakeMemory final : public SharedDeviceMemory {
 public:
  explicit FakeMemory(std::vector<std::byte>& bytes) : bytes_(bytes) { ++open; }
  ~FakeMemory() override { --open; }
  int64_t bytes() const override { return static_cast<int64_t>(bytes_.size()); }
  Status Read(int64_t offset, std::span<std::byte> to) const override {
    std::copy_n(bytes_.begin() + offset, to.size(), to.begin());
    return absl::OkStatus();
  }
  Status Write(int64_t offset, std::span<const std::byte> from) const override {
    std::ranges::copy(from, bytes_.begin() + offset);
    return absl::OkStatus();
  }

  static inline int open = 0;

 private:
  std::vector<std::byte>& bytes_;
};

class DeviceRegionsTest : public ::testing::Test {
 protected:
  DeviceRegionsTest() {
    regions_.ServeDevices(
        [this](int64_t device, std::string_view handle) -> StatusOr<std::unique_ptr<SharedDeviceMemory>> {
          if (device != 1 || handle != "handle") return InvalidArgument("CUDA does not open this handle");
          return std::make_unique<FakeMemory>(memory_);
        });
  }

  Status Register(const std::string& name, uint64_t bytes, int64_t device = 1, const std::string& handle = "handle") {
    inference::CudaSharedMemoryRegisterRequest request;
    request.set_name(name);
    request.set_raw_handle(handle);
    request.set_device_id(device);
    request.set_byte_size(bytes);
    return regions_.Register(request);
  }

  Status Unregister(const std::string& name) {
    inference::CudaSharedMemoryUnregisterRequest request;
    request.set_name(name);
    return regions_.Unregister(request);
  }

  static SharedBytes::Parameters Naming(const std::string& name, int64_t bytes, int64_t offset) {
    SharedBytes::Parameters parameters;
    const SharedBytes bytes_of = {.region = nullptr, .name = name, .offset = offset, .bytes = bytes};
    bytes_of.NameIn(parameters);
    return parameters;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1024);
  SharedRegions regions_{"", 4096};
};

TEST_F(DeviceRegionsTest, AreReadAndWritten) {
  memory_[100] = std::byte{7};
  ASSERT_THAT(Register("r", 1000), IsOk());
  const StatusOr<SharedBytes> found = regions_.Find(Naming("r", 8, 96));
  ASSERT_THAT(found.status(), IsOk());
  std::vector<std::byte> bytes(8);
  ASSERT_THAT(found->region->Read(96, bytes), IsOk());
  EXPECT_EQ(bytes[4], std::byte{7});
  bytes[5] = std::byte{9};
  ASSERT_THAT(found->region->Write(96, bytes), IsOk());
  EXPECT_EQ(memory_[101], std::byte{9});
  EXPECT_THAT(regions_.Find(Naming("r", 8, 993)).status(), IsError(StatusCode::kInvalidArgument, "are not all in it"));
}

TEST_F(DeviceRegionsTest, AreClosedOnceNobodyUsesThem) {
  ASSERT_THAT(Register("r", 1024), IsOk());
  {
    const StatusOr<SharedBytes> found = regions_.Find(Naming("r", 8, 0));
    ASSERT_THAT(Unregister("r"), IsOk());
    EXPECT_EQ(FakeMemory::open, 1) << "a request has it";
  }
  EXPECT_EQ(FakeMemory::open, 0);
  EXPECT_EQ(regions_.load().bytes, 0);
  EXPECT_THAT(Unregister("r"), IsOk());
}

TEST_F(DeviceRegionsTest, RefusesWhatIsNotThere) {
  EXPECT_THAT(Register("r", 1025),
              IsError(StatusCode::kInvalidArgument, "has 1024 bytes; a region of 1025 is not in it"));
  EXPECT_EQ(Register("r", 0).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Register("r", 8, 0),
              IsError(StatusCode::kInvalidArgument, "shared memory region 'r': CUDA does not open this handle"));
  EXPECT_EQ(Register("r", 8, 1, "other").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FakeMemory::open, 0);
}

TEST_F(DeviceRegionsTest, AreBoundedAndHaveNamesOfTheirOwn) {
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_THAT(Register(name, 1024), IsOk());
  EXPECT_EQ(Register("a", 1).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Register("e", 1).code(), StatusCode::kResourceExhausted);
  ASSERT_THAT(Unregister(""), IsOk());
  EXPECT_THAT(Register("e", 1), IsOk());
}

TEST_F(DeviceRegionsTest, AreListedByTheirKind) {
  ASSERT_THAT(Register("r", 1000), IsOk());
  inference::CudaSharedMemoryStatusResponse all;
  ASSERT_THAT(regions_.Describe("", all), IsOk());
  ASSERT_EQ(all.regions_size(), 1);
  EXPECT_EQ(all.regions().at("r").device_id(), 1);
  EXPECT_EQ(all.regions().at("r").byte_size(), 1000);
  inference::CudaSharedMemoryStatusResponse none;
  EXPECT_EQ(regions_.Describe("other", none).code(), StatusCode::kNotFound);
  inference::SystemSharedMemoryStatusResponse files;
  EXPECT_EQ(regions_.Describe("", files).code(), StatusCode::kUnimplemented) << "only GPUs' memory is served";
}

TEST(SharedRegions, ServeNoDeviceUntilTheyAreTold) {
  SharedRegions regions("prefix", 4096);
  EXPECT_EQ(regions.Register(inference::CudaSharedMemoryRegisterRequest()).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(regions.Unregister(inference::CudaSharedMemoryUnregisterRequest()).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(regions.Unregister(inference::SystemSharedMemoryUnregisterRequest()).code(), StatusCode::kOk);
}

}  // namespace
}  // namespace swizzle
