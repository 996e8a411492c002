// --device: what it may say, and what is opened.
#include "kernels/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;

TEST(ParseDeviceTest, TakesWhatTheHelpSays) {
  EXPECT_FALSE(ParseDevice("cpu")->gpus);
  EXPECT_TRUE(ParseDevice("auto")->cpu_if_none);
  EXPECT_TRUE(ParseDevice("cuda")->gpus);
  EXPECT_FALSE(ParseDevice("cuda")->cpu_if_none);
  EXPECT_THAT(ParseDevice("cuda:3")->ordinals, ElementsAre(3));
  EXPECT_THAT(ParseDevice("cuda:2,0")->ordinals, ElementsAre(2, 0));
}

TEST(ParseDeviceTest, RefusesAllElseNamingIt) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:,", "cuda:1,", "cuda:-1", "cuda:1,1", "cuda:a", "cuda:1 ",
                           "cuda:99999999999", "CPU", "cpu:0"}) {
    EXPECT_THAT(ParseDevice(text), IsError(StatusCode::kInvalidArgument, "is no device")) << text;
  }
}

TEST(ParseDeviceTest, WithoutNumbersItMeansAllThatThereAre) {
  EXPECT_THAT(OrdinalsOf(*ParseDevice("cuda"), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(OrdinalsOf(*ParseDevice("auto"), 2), ElementsAre(0, 1));
  EXPECT_THAT(OrdinalsOf(*ParseDevice("cuda:2"), 3), ElementsAre(2));
}

// What a machine without GPUs does, or a build without CUDA; one with GPUs opens them.
TEST(DevicesTest, AutoTakesTheCpuWhereThereIsNoGpuAndSaysWhy) {
  const auto devices = Devices::Open("auto");
  ASSERT_TRUE(devices.ok()) << devices.status();
  if (const auto gpus = CountCudaDevices(); !gpus.ok()) {
    EXPECT_EQ(devices->reason(), gpus.status().message());
    EXPECT_TRUE(devices->gpus().empty());
    EXPECT_EQ(devices->main().name(), "cpu");
    EXPECT_EQ(Devices::Open("cuda").status(), gpus.status());
  } else {
    EXPECT_FALSE(devices->gpus().empty());
  }
}

TEST(DevicesTest, GpusHaveNumbers) {
  std::vector<std::unique_ptr<Backend>> gpus;
  for (int i = 0; i < 3; ++i) gpus.push_back(std::make_unique<testing::FakeDevice>(1, 0, Concat("cuda:", i)));
  const Devices devices(NewCpuBackend(), std::move(gpus));
  const auto named = devices.GpusOf(std::vector<int>{2, 0});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(*named, ElementsAre(devices.gpus()[2], devices.gpus()[0]));
  EXPECT_THAT(devices.GpusOf(std::vector<int>{0, 3}).status(),
              IsError(StatusCode::kFailedPrecondition,
                      "there is no GPU 3 here, or --device does not name it; of GPUs there are 0, 1, 2"));
  EXPECT_THAT(Devices(NewCpuBackend()).GpusOf(std::vector<int>{0}).status(),
              IsError(StatusCode::kFailedPrecondition, "of GPUs there are none"));
}

TEST(DevicesTest, ModelsRunOnTheCpuWhereThereIsNothingElse) {
  const Devices devices(NewCpuBackend());
  EXPECT_EQ(&devices.main(), &devices.cpu());
  EXPECT_TRUE(devices.gpus().empty());
  EXPECT_TRUE(devices.health().ok());
}

}  // namespace
}  // namespace swizzle
