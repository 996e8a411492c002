// ONNX files to the end of a run of their regions: what is found in a graph, cut out of it, planned, and planned again
// for other sizes, and what regions hand each other. The kernels are the reference's, so that few are built.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/fuzz/drawn_inputs.h"
#include "tests/support/reference_backend.h"

namespace swizzle::regions {
namespace {

// Regions change no shape and no type. Elements are not compared: they may be of any size, and round otherwise.
void Compare(const std::vector<interpreter::Array>& planned, const std::vector<interpreter::Array>& interpreted) {
  SWIZZLE_CHECK(planned.size() == interpreted.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    SWIZZLE_CHECK(planned[i].dtype == interpreted[i].dtype);
    SWIZZLE_CHECK(planned[i].shape == interpreted[i].shape);
  }
}

void Run(std::span<const std::byte> file, std::shared_ptr<const interpreter::Program> program, Backend& backend,
         Stream& stream) {
  const auto inputs = interpreter::DrawnInputs::Of(*program, file);
  if (!inputs) return;
  PlanOptions options;
  options.max_batch = 2;
  options.threads = 1;
  options.tuning_budget = absl::ZeroDuration();
  const RegionalProgram regional = PlanRegions(program, backend, options, {interpreter::kLimits});
  if (regional.program == program) return;
  SWIZZLE_CHECK(!regional.Text().empty());
  const auto planned = regional.program->Run(inputs->views(), stream, interpreter::kLimits);
  const auto interpreted = program->Run(inputs->views(), stream, interpreter::kLimits);
  SWIZZLE_CHECK(stream.Synchronize().ok());
  if (planned.ok() && interpreted.ok()) Compare(*planned, *interpreted);
}

}  // namespace
}  // namespace swizzle::regions

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const swizzle::ReadOptions options = swizzle::interpreter::SmallLimits();
  static swizzle::testing::ReferenceBackend backend;
  static swizzle::cpu::CpuStream stream(1);
  if (size == 0) return 0;
  const auto file = std::as_bytes(std::span(data, size));
  auto program = swizzle::interpreter::ReadProgram(file, options);
  if (program.ok()) swizzle::regions::Run(file, *std::move(program), backend, stream);
  return 0;
}
