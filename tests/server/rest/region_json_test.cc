#include "server/rest/region_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace swizzle {
namespace {

using ::testing::HasSubstr;

TEST(RegionJsonTest, ReadsRegionsOfTheSystem) {
  const auto region = ReadSystemRegion(R"({"key": "/k", "offset": 7, "byte_size": 18446744073709551615})", "r");
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->name(), "r");
  EXPECT_EQ(region->key(), "/k");
  EXPECT_EQ(region->offset(), 7u);
  EXPECT_EQ(region->byte_size(), 18446744073709551615u);
  EXPECT_EQ(ReadSystemRegion(R"({"key": "/k", "byte_size": 1})", "r")->offset(), 0u);
}

TEST(RegionJsonTest, ReadsRegionsOfGpus) {
  const auto region = ReadCudaRegion(R"({"raw_handle": {"b64": "AP8="}, "device_id": 1, "byte_size": 64})", "r");
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->name(), "r");
  EXPECT_EQ(region->raw_handle(), std::string("\0\xff", 2));
  EXPECT_EQ(region->device_id(), 1);
  EXPECT_EQ(region->byte_size(), 64u);
}

TEST(RegionJsonTest, SaysWhatIsWrong) {
  const struct {
    const char *text, *said;
  } system[] = {{"", "must be a JSON object"},
                {"[]", "must be a JSON object"},
                {R"({"byte_size": 1})", "'key' must be there"},
                {R"({"key": 1, "byte_size": 1})", "'key' must be there"},
                {R"({"key": "k"})", "'byte_size' must be there"},
                {R"({"key": "k", "byte_size": -1})", "'byte_size' must be there"},
                {R"({"key": "k", "byte_size": 1, "offset": "0"})", "'offset' must be there"}},
    cuda[] = {
        {"7", "must be a JSON object"},
        {"{}", "'raw_handle' must be there"},
        {R"({"raw_handle": "AP8="})", "'raw_handle' must be there"},
        {R"({"raw_handle": {}})", "'b64' must be there"},
        {R"({"raw_handle": {"b64": "!"}})", "'b64' is no base64"},
        {R"({"raw_handle": {"b64": ""}, "byte_size": 1})", "'device_id' must be there"},
        {R"({"raw_handle": {"b64": ""}, "device_id": 9223372036854775808, "byte_size": 1})", "there is no device"},
        {R"({"raw_handle": {"b64": ""}, "device_id": 0})", "'byte_size' must be there"}};
  for (const auto& its : system) {
    const Status status = ReadSystemRegion(its.text, "r").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << its.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(its.said));
  }
  for (const auto& its : cuda) {
    const Status status = ReadCudaRegion(its.text, "r").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << its.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(its.said));
  }
}

TEST(RegionJsonTest, WritesThemByName) {
  inference::SystemSharedMemoryStatusResponse system;
  EXPECT_EQ(WriteRegions(system), "[]");
  for (const char* const name : {"b", "a"}) {
    auto& region = (*system.mutable_regions())[name];
    region.set_name(name);
    region.set_key("k");
    region.set_byte_size(7);
  }
  EXPECT_EQ(WriteRegions(system), R"([{"name":"a","key":"k","offset":0,"byte_size":7},)"
                                  R"({"name":"b","key":"k","offset":0,"byte_size":7}])");
  inference::CudaSharedMemoryStatusResponse cuda;
  (*cuda.mutable_regions())["a"].set_name("a");
  EXPECT_EQ(WriteRegions(cuda), R"([{"name":"a","device_id":0,"byte_size":0}])");
}

}  // namespace
}  // namespace swizzle
