// The checkpoints of tests/testdata/checkpoints, and what programs made of them answer beside what their authors'
// models did.
#ifndef SWIZZLE_TESTS_SUPPORT_SHIPPED_CHECKPOINT_H_
#define SWIZZLE_TESTS_SUPPORT_SHIPPED_CHECKPOINT_H_

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "model_loader/files/read_file.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/safetensors/checkpoint.h"
#include "model_loader/safetensors/sharded_checkpoint.h"
#include "tests/support/status_matchers.h"

namespace swizzle::testing {

inline std::filesystem::path Shipped(const std::string& name) {
  return std::filesystem::path(SWIZZLE_SOURCE_DIR "/tests/testdata/checkpoints") / name;
}

inline std::string ConfigOf(const std::string& name) {
  const auto bytes = ReadFile(Shipped(name) / "config.json", 1 << 20);
  SWIZZLE_CHECK(bytes.ok());
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

inline TensorMap TensorsIn(const std::filesystem::path& file) {
  auto tensors = ReadTensors(file);
  SWIZZLE_CHECK(tensors.ok());
  return *std::move(tensors);
}
inline TensorMap TensorsOf(const std::string& name) { return TensorsIn(Shipped(name) / "model.safetensors"); }
// The model's inputs and outputs, by name.
inline TensorMap ExpectedOf(const std::string& name) { return TensorsIn(Shipped(name) / "expected.safetensors"); }

// What a program makes of the inputs among `expected`, by name.
inline StatusOr<TensorMap> Run(const interpreter::Program& program, const TensorMap& expected) {
  std::vector<TensorView> inputs;
  for (const interpreter::Port& port : program.inputs()) {
    const Tensor& tensor = expected.at(port.name);
    inputs.push_back({tensor.dtype, tensor.shape, tensor.bytes});
  }
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend->NewStream(1));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<interpreter::Array> outputs, program.Run(inputs, *stream));
  TensorMap result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto bytes = outputs[i].AsBytes();
    result[program.outputs()[i].name] = {outputs[i].dtype, outputs[i].shape, {bytes.begin(), bytes.end()}};
  }
  return result;
}

inline double LargestDifference(const Tensor& a, const Tensor& b) {
  double difference = 0, magnitude = 0;
  for (size_t i = 0; i < a.floats().size(); ++i) {
    difference = std::max(difference, std::abs(double{a.floats()[i]} - b.floats()[i]));
    magnitude = std::max(magnitude, std::abs(double{b.floats()[i]}));
  }
  return difference / magnitude;
}

inline void ExpectAsExpected(const interpreter::Program& program, const TensorMap& expected, double tolerance) {
  const auto outputs = Run(program, expected);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ(outputs->size() + program.inputs().size(), expected.size());
  for (const auto& [name, output] : *outputs) {
    ASSERT_TRUE(expected.contains(name)) << name;
    ASSERT_EQ(output.shape, expected.at(name).shape) << name;
    EXPECT_LT(LargestDifference(output, expected.at(name)), tolerance) << name;
  }
}

// That a row answers alone, at its own length, as it does padded among others. REQUIRES: expected values of two rows of
// the shipped length, of which the second is filled by the first `tokens`.
inline void ExpectPaddingChangesNothing(const interpreter::Program& program, const TensorMap& expected,
                                        int64_t tokens) {
  TensorMap alone;
  for (const interpreter::Port& port : program.inputs()) {
    const std::vector<std::byte>& bytes = expected.at(port.name).bytes;
    const auto second = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
    const auto count = static_cast<std::ptrdiff_t>(static_cast<size_t>(tokens) * sizeof(int64_t));
    alone[port.name] = {DType::kInt64, {1, tokens}, {second, second + count}};
  }
  const auto outputs = Run(program, alone);
  ASSERT_THAT(outputs, IsOk());
  for (const auto& [name, output] : *outputs) {
    const auto all = expected.at(name).floats();
    const auto second = all.subspan(all.size() / 2, output.floats().size());
    for (size_t i = 0; i < second.size(); ++i) EXPECT_NEAR(output.floats()[i], second[i], 1e-5) << name << " " << i;
  }
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_SHIPPED_CHECKPOINT_H_
