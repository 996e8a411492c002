// Runs a model of one FP32 input on rows of numbers, and prints what comes out: run_model FILE [NUMBER...]
#include <swizzle/engine/engine.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

namespace {

using swizzle::engine::Model;
using swizzle::engine::Output;

// The numbers as the input's elements: what its shape leaves open is as much as there are numbers for.
absl::StatusOr<std::vector<Output>> Run(Model& model, const std::vector<float>& numbers) {
  if (model.inputs().empty()) return absl::NotFoundError("the model has no input");
  std::vector<int64_t> shape = model.inputs()[0].shape;
  int64_t row = 1;
  for (const int64_t extent : shape) row *= extent < 1 ? 1 : extent;
  for (int64_t& extent : shape) {
    if (extent >= 0) continue;
    extent = static_cast<int64_t>(numbers.size()) / row;
    row *= extent < 1 ? 1 : extent;
  }
  return model.Run({{model.inputs()[0].name, "FP32", shape, std::as_bytes(std::span(numbers))}});
}

void Print(const Output& output) {
  std::cout << output.name << " [";
  for (size_t i = 0; i < output.shape.size(); ++i) std::cout << (i == 0 ? "" : ",") << output.shape[i];
  std::cout << "]:";
  std::vector<float> values(output.datatype == "FP32" ? output.data.size() / sizeof(float) : 0);
  if (!values.empty()) std::memcpy(values.data(), output.data.data(), output.data.size());
  for (const float value : values) std::cout << ' ' << value;
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: run_model FILE [NUMBER...]\n";
    return 2;
  }
  std::vector<float> numbers;
  for (int i = 2; i < argc; ++i) numbers.push_back(std::strtof(argv[i], nullptr));
  const auto model = Model::Open(argv[1]);
  const auto outputs = model.ok() ? Run(**model, numbers) : model.status();
  if (!outputs.ok()) {
    std::cerr << "run_model: " << outputs.status().message() << '\n';
    return 1;
  }
  for (const Output& output : *outputs) Print(output);
}
