#include "server/telemetry/gpu_sensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/telemetry/metrics.h"

namespace swizzle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(GpuSensorsTest, ReadsWhatEachGpuTells) {
  const auto sensors = OpenGpuSensors(FAKE_NVML);
  ASSERT_NE(sensors, nullptr);
  const std::vector<GpuReading> all = sensors->Read();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].uuid, "GPU-1");
  EXPECT_EQ(all[0].utilization, 0.75);
  EXPECT_EQ(all[0].memory_used, 400);
  EXPECT_EQ(all[0].memory_total, 1000);
  EXPECT_EQ(all[0].power_watts, 250.5);
  EXPECT_EQ(all[0].power_limit_watts, 700);
  EXPECT_EQ(all[0].energy_joules, 12345);
  EXPECT_EQ(all[1].uuid, "GPU-2");
  EXPECT_EQ(all[1].utilization, std::nullopt);
  EXPECT_EQ(all[1].power_watts, std::nullopt);
  EXPECT_EQ(all[1].memory_total, 1000);
}

TEST(GpuSensorsTest, WithoutTheDriverThereAreNone) {
  EXPECT_EQ(OpenGpuSensors("libnvidia-ml-that-is-not-there.so.1"), nullptr);
  EXPECT_EQ(OpenGpuSensors("libc.so.6"), nullptr) << "a library, but another one";
}

TEST(GpuSensorsTest, MetricsHaveThemByBothNames) {
  const auto metrics = *NewMetrics("127.0.0.1:0");
  EXPECT_THAT(metrics->Text(), Not(HasSubstr("gpu_utilization")));
  metrics->ShowGpuSensors(OpenGpuSensors(FAKE_NVML));
  const std::string ours = metrics->Text();
  EXPECT_THAT(ours, AllOf(HasSubstr("swizzle_gpu_utilization_ratio{gpu_uuid=\"GPU-1\"} 0.75\n"),
                          HasSubstr("swizzle_gpu_power_watts{gpu_uuid=\"GPU-1\"} 250.5\n"),
                          HasSubstr("swizzle_gpu_power_limit_watts{gpu_uuid=\"GPU-1\"} 700\n"),
                          HasSubstr("swizzle_gpu_energy_joules_total{gpu_uuid=\"GPU-1\"} 12345\n"),
                          Not(HasSubstr("GPU-2")), Not(HasSubstr("nv_"))));
  metrics->ShowTritonNames();
  EXPECT_THAT(metrics->Text(), AllOf(HasSubstr("nv_gpu_utilization{gpu_uuid=\"GPU-1\"} 0.75\n"),
                                     HasSubstr("nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-2\"} 400\n"),
                                     HasSubstr("nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-1\"} 1000\n"),
                                     HasSubstr("nv_gpu_power_usage{gpu_uuid=\"GPU-1\"} 250.5\n"),
                                     HasSubstr("nv_gpu_power_limit{gpu_uuid=\"GPU-1\"} 700\n"),
                                     HasSubstr("nv_energy_consumption{gpu_uuid=\"GPU-1\"} 12345\n")));
}

}  // namespace
}  // namespace swizzle
