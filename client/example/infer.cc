// Asks a model of one FP32 input for an answer, and prints it: infer HOST:PORT MODEL [NUMBER...]
#include <swizzle/client/client.h>

#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

using swizzle::client::Client;

absl::StatusOr<swizzle::client::InferResult> Ask(Client& client, const char* model, const std::vector<float>& numbers) {
  if (absl::Status status = client.WaitReady(model, absl::Seconds(60)); !status.ok()) return status;
  const auto metadata = client.GetModelMetadata(model);
  if (!metadata.ok()) return metadata.status();
  if (metadata->inputs.empty()) return absl::NotFoundError("the model has no input");
  const swizzle::client::Shape shape = {1, static_cast<int64_t>(numbers.size())};
  swizzle::client::InferRequest request;
  request.model = model;
  request.timeout = absl::Seconds(10);
  request.inputs = {swizzle::client::MakeTensor<float>(metadata->inputs[0].name, "FP32", shape, numbers)};
  return client.Infer(request);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: infer HOST:PORT MODEL [NUMBER...]\n";
    return 2;
  }
  std::vector<float> numbers;
  for (int i = 3; i < argc; ++i) numbers.push_back(std::strtof(argv[i], nullptr));
  const auto client = swizzle::client::NewClient({.address = argv[1]});
  const auto result = Ask(*client, argv[2], numbers);
  if (!result.ok()) {
    std::cerr << "infer: " << result.status().message() << '\n';
    return 1;
  }
  for (const swizzle::client::Tensor& output : result->outputs) {
    std::cout << output.name << ' ' << swizzle::client::ShapeText(output.shape) << ':';
    for (const float value : output.Values<float>()) std::cout << ' ' << value;
    std::cout << '\n';
  }
}
