// ONNX files from the reader to the end of a run by the interpreter, whatever the model is and its inputs hold. What a
// run may take is little, so that time goes into many models; those that want more are refused by the limits on runs,
// which are tried with them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/run/load.h"
#include "tests/fuzz/drawn_inputs.h"

namespace swizzle::interpreter {
namespace {

void Run(std::span<const std::byte> file, const Program& program, Stream& stream) {
  const std::optional<DrawnInputs> inputs = DrawnInputs::Of(program, file);
  if (!inputs) return;
  const StatusOr<std::vector<Array>> outputs = program.Run(inputs->views(), stream, kLimits);
  SWIZZLE_CHECK(stream.Synchronize().ok());
  if (!outputs.ok()) {
    SWIZZLE_CHECK(!outputs.status().message().empty());
    return;
  }
  SWIZZLE_CHECK(outputs->size() == program.outputs().size());
  const bool batched = program.rows_are_independent();
  const std::span<const TensorView> views = inputs->views();
  for (const Array& output : *outputs) {
    SWIZZLE_CHECK(output.bytes() >= 0 && output.bytes() <= kLimits.max_array_bytes);
    SWIZZLE_CHECK(!batched || views.empty() || (output.rank() > 0 && output.shape[0] == views[0].shape[0]));
  }
}

}  // namespace
}  // namespace swizzle::interpreter

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const swizzle::ReadOptions options = swizzle::interpreter::SmallLimits();
  static swizzle::cpu::CpuStream stream(1);
  if (size == 0) return 0;
  const auto file = std::as_bytes(std::span(data, size));
  const auto program = swizzle::interpreter::ReadProgram(file, options);
  if (program.ok()) swizzle::interpreter::Run(file, **program, stream);
  return 0;
}
