// A client of several servers under load, by the client library: `--callers` threads ask the model `identity`, each
// waiting for its answer, until standard input ends.
//
//   balanced_load --address=dns://127.0.0.1:5353/replicas.test:8001 --round-robin --attempts=5 < pipe
//
// Prints a line for each call, when it ends: code, attempts, version that answered, milliseconds. WRONG is the code of
// an answer that is not what was sent. tests/bench/balanced_clients.py reads them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/client.h"

namespace swizzle::client {
namespace {

struct Flags {
  ClientOptions client;
  int callers = 4;
  double timeout_s = 20, attempt_timeout_s = 0, keepalive_s = 20, keepalive_timeout_s = 10, resolution_s = 1;
};

Flags Parse(int argc, char** argv) {
  Flags flags;
  CLI::App app("A client of several servers under load");
  app.add_option("--address", flags.client.address)->required();
  app.add_flag("--round-robin", flags.client.round_robin);
  app.add_option("--callers", flags.callers);
  app.add_option("--attempts", flags.client.retries.max_attempts);
  app.add_option("--timeout", flags.timeout_s, "seconds of a call");
  app.add_option("--attempt-timeout", flags.attempt_timeout_s, "seconds; 0: none");
  app.add_option("--keepalive", flags.keepalive_s, "seconds; 0: none");
  app.add_option("--keepalive-timeout", flags.keepalive_timeout_s, "seconds");
  app.add_option("--resolution", flags.resolution_s, "seconds between look-ups of a name");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  flags.client.timeout = absl::Seconds(flags.timeout_s);
  flags.client.retries.attempt_timeout = absl::Seconds(flags.attempt_timeout_s);
  flags.client.keepalive_time = absl::Seconds(flags.keepalive_s);
  flags.client.keepalive_timeout = absl::Seconds(flags.keepalive_timeout_s);
  flags.client.min_resolution_interval = absl::Seconds(flags.resolution_s);
  return flags;
}

void CallUntil(const std::atomic<bool>& stopping, Client& client, int caller) {
  for (int i = 0; !stopping; ++i) {
    std::vector<float> values(16, static_cast<float>(caller * 1000 + i % 1000));
    InferRequest request;
    request.model = "identity";
    request.inputs = {MakeTensor<float>("INPUT0", "FP32", {1, 16}, values)};
    const absl::Time start = absl::Now();
    const absl::StatusOr<InferResult> result = client.Infer(request);
    const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - start);
    if (!result.ok()) {
      const std::string message(result.status().message());
      std::printf("%s %d - %.3f %s\n", absl::StatusCodeToString(result.status().code()).c_str(),
                  AttemptsOf(result.status()), milliseconds, message.c_str());
    } else {
      const bool right = result->outputs.size() == 1 && result->outputs[0].data == request.inputs[0].data;
      std::printf("%s %d %s %.3f\n", right ? "OK" : "WRONG", result->attempts, result->version.c_str(), milliseconds);
    }
  }
}

void Run(const Flags& flags) {
  const std::unique_ptr<Client> client = NewClient(flags.client);
  std::atomic<bool> stopping = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < flags.callers; ++i) {
    threads.emplace_back([&, i] { CallUntil(stopping, *client, i); });
  }
  for (char byte; read(STDIN_FILENO, &byte, 1) > 0;) {
  }
  stopping = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace swizzle::client

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  swizzle::client::Run(swizzle::client::Parse(argc, argv));
}
