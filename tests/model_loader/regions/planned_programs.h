// Programs that tests make, planned in regions and interpreted.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_REGIONS_PLANNED_PROGRAMS_H_
#define SWIZZLE_TESTS_MODEL_LOADER_REGIONS_PLANNED_PROGRAMS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {

// Two thirds of them are zeros.
inline std::vector<float> Weights(int64_t count) {
  std::vector<float> weights(static_cast<size_t>(count));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = i % 3 == 0 ? static_cast<float>(i % 13) / 16 - 0.3f : 0.0f;
  return weights;
}

// The first output for inputs that count up in small steps.
inline StatusOr<interpreter::Array> RunCounting(const interpreter::Program& program, Stream& stream,
                                                const std::vector<Shape>& shapes,
                                                const interpreter::Limits& limits = {}, StepGate* gate = nullptr) {
  std::vector<std::vector<float>> elements;
  std::vector<TensorView> views;
  for (const Shape& shape : shapes) {
    std::vector<float>& drawn = elements.emplace_back(static_cast<size_t>(*ElementCount(shape)));
    for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11) / 8;
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    views.push_back({DType::kFloat32, shapes[i], std::as_bytes(std::span(elements[i]))});
  }
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<interpreter::Array> outputs,
                           program.Run(views, stream, limits, nullptr, {nullptr, gate}));
  return outputs.at(0);
}

inline void ExpectSameElements(const StatusOr<interpreter::Array>& actual,
                               const StatusOr<interpreter::Array>& expected) {
  ASSERT_THAT(expected, swizzle::testing::IsOk());
  ASSERT_THAT(actual, swizzle::testing::IsOk());
  ASSERT_EQ(actual->shape, expected->shape);
  for (size_t i = 0; i < expected->As<float>().size(); ++i) {
    ASSERT_NEAR(actual->As<float>()[i], expected->As<float>()[i], 1e-4 * (1 + std::abs(expected->As<float>()[i])))
        << i << " of " << ShapeText(expected->shape);
  }
}

class PlannedPrograms : public ::testing::Test {
 protected:
  RegionalProgram Plan(const swizzle::testing::OnnxBuilder& builder) {
    program_ = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    const PlanOptions options{.threads = 2, .tuning_budget = absl::ZeroDuration()};
    return PlanRegions(program_, *backend_, options);
  }

  StatusOr<interpreter::Array> Run(const interpreter::Program& program, const std::vector<Shape>& shapes,
                                   const interpreter::Limits& limits = {}, StepGate* gate = nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend_->NewStream(2));
    return RunCounting(program, *stream, shapes, limits, gate);
  }

  // That regions compute what the interpreter does.
  void ExpectSame(const RegionalProgram& regional, const std::vector<Shape>& shapes) {
    ExpectSameElements(Run(*regional.program, shapes), Run(*program_, shapes));
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::shared_ptr<const interpreter::Program> program_;
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_TESTS_MODEL_LOADER_REGIONS_PLANNED_PROGRAMS_H_
