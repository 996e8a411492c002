// Asks a model of one FP32 input so many times over one stream, and prints the answers as they come; several servers
// share the streams, and calls beside them are tried again: stream HOST:PORT[,HOST:PORT...] MODEL TIMES [NUMBER...]
#include <swizzle/client/client.h>

#include <cstdlib>
#include <future>
#include <iostream>
#include <vector>

namespace {

namespace client = swizzle::client;

void Print(const client::StreamAnswer& answer) {
  if (!answer.result.ok()) {
    std::cout << answer.id << ": " << answer.result.status().message() << '\n';
    return;
  }
  for (const client::Tensor& output : answer.result->outputs) {
    std::cout << answer.id << ": " << output.name << ' ' << client::ShapeText(output.shape) << '\n';
  }
}

absl::Status Ask(client::Client& connection, const char* model, int times, const std::vector<float>& numbers) {
  if (absl::Status status = connection.WaitReady(model, absl::Seconds(60)); !status.ok()) return status;
  const auto metadata = connection.GetModelMetadata(model);
  if (!metadata.ok()) return metadata.status();
  if (metadata->inputs.empty()) return absl::NotFoundError("the model has no input");
  client::InferRequest request;
  request.model = model;
  request.inputs = {
      client::MakeTensor<float>(metadata->inputs[0].name, "FP32", {1, static_cast<int64_t>(numbers.size())}, numbers)};
  std::promise<absl::Status> end;
  const auto stream = connection.OpenStream(
      {.on_answer = Print, .on_end = [&end](const absl::Status& status) { end.set_value(status); }}, absl::Minutes(10));
  for (int i = 0; i < times; ++i) {
    request.id = std::to_string(i);
    if (!stream->Send(request).ok()) break;  // the end says why
  }
  stream->HalfClose();
  return end.get_future().get();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: stream HOST:PORT[,HOST:PORT...] MODEL TIMES [NUMBER...]\n";
    return 2;
  }
  std::vector<float> numbers;
  for (int i = 4; i < argc; ++i) numbers.push_back(std::strtof(argv[i], nullptr));
  const auto connection = client::NewClient({.address = argv[1], .retries = {.max_attempts = 4}});
  const absl::Status status = Ask(*connection, argv[2], std::atoi(argv[3]), numbers);
  if (!status.ok()) std::cerr << "stream: " << status.message() << '\n';
  return status.ok() ? 0 : 1;
}
