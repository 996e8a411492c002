// A program on the host, and the same on a device of tests.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_OFFLOAD_ON_DEVICE_H_
#define SWIZZLE_TESTS_MODEL_LOADER_OFFLOAD_ON_DEVICE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/kernels/fake_device.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::testing {

inline std::vector<float> Weights(int64_t count) {
  std::vector<float> weights(static_cast<size_t>(count));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = i % 3 == 0 ? static_cast<float>(i % 13) / 16 - 0.3f : 0.0f;
  return weights;
}

// FP32 in small steps, or INT64 below 5.
inline std::vector<std::byte> Drawn(DType dtype, const Shape& shape, int seed) {
  const auto count = static_cast<size_t>(*ElementCount(shape));
  std::vector<std::byte> bytes(count * ElementBytes(dtype));
  for (size_t i = 0; i < count; ++i) {
    const size_t number = (i + static_cast<size_t>(seed)) * 7 % 23;
    if (dtype == DType::kInt64) {
      reinterpret_cast<int64_t*>(bytes.data())[i] = static_cast<int64_t>(number % 5);
    } else {
      reinterpret_cast<float*>(bytes.data())[i] = (static_cast<float>(number) - 11) / 8;
    }
  }
  return bytes;
}

class OnDeviceTest : public ::testing::Test {
 protected:
  using Outputs = StatusOr<std::vector<interpreter::Array>>;

  void Plan(const OnnxBuilder& builder, Precision precision = Precision::kFloat32) {
    program_ = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    const PlanOptions options{.threads = 1, .precision = precision, .tuning_budget = absl::ZeroDuration()};
    regional_ = regions::PlanRegions(program_, {*host_, &device_, &device_.functions()}, options);
    ASSERT_NE(regional_.on_device, nullptr) << regional_.not_on_device << regional_.unplanned;
    runner_ = *regional_.NewRunner(*host_, 1);
  }

  std::vector<std::vector<std::byte>> Inputs(const std::vector<Shape>& shapes, int seed) const {
    std::vector<std::vector<std::byte>> inputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      inputs.push_back(Drawn(*program_->inputs()[i].dtype, shapes[i], seed));
    }
    return inputs;
  }
  std::vector<TensorView> Views(const std::vector<Shape>& shapes,
                                const std::vector<std::vector<std::byte>>& inputs) const {
    std::vector<TensorView> views;
    for (size_t i = 0; i < shapes.size(); ++i) views.push_back({*program_->inputs()[i].dtype, shapes[i], inputs[i]});
    return views;
  }

  // That the device computes what the interpreter does, of inputs of these shapes.
  void ExpectSame(const std::vector<Shape>& shapes, int seed = 0, double tolerance = 1e-4) {
    const auto inputs = Inputs(shapes, seed);
    const auto views = Views(shapes, inputs);
    const auto stream = *host_->NewStream(1);
    const Outputs expected = program_->Run(views, *stream);
    ASSERT_THAT(expected, IsOk());
    const Outputs actual = runner_->Run(views);
    ASSERT_THAT(actual, IsOk());
    ASSERT_EQ(actual->size(), expected->size());
    for (size_t i = 0; i < expected->size(); ++i) ExpectNear((*expected)[i], (*actual)[i], tolerance);
  }

  const std::unique_ptr<Backend> host_ = NewCpuBackend();
  FakeDevice device_;
  std::shared_ptr<const interpreter::Program> program_;
  regions::RegionalProgram regional_;
  std::unique_ptr<interpreter::ProgramRunner> runner_;

 private:
  static void ExpectNear(const interpreter::Array& expected, const interpreter::Array& actual, double tolerance) {
    ASSERT_EQ(actual.shape, expected.shape);
    ASSERT_EQ(actual.dtype, expected.dtype);
    if (expected.dtype != DType::kFloat32) {
      ASSERT_TRUE(std::ranges::equal(expected.AsBytes(), actual.AsBytes()));
      return;
    }
    for (size_t i = 0; i < expected.As<float>().size(); ++i) {
      const float wanted = expected.As<float>()[i];
      if (std::isnan(wanted) && std::isnan(actual.As<float>()[i])) continue;
      ASSERT_NEAR(actual.As<float>()[i], wanted, tolerance * (1 + std::abs(wanted))) << i;
    }
  }
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_MODEL_LOADER_OFFLOAD_ON_DEVICE_H_
