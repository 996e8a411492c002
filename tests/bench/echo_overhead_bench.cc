// What the server adds to gRPC: ModelInfer of the identity model, against a bare callback service that answers the same
// request with as many bytes, both served by a process of their own and called from this one, in turn. With --address,
// a model of a server that runs already takes the identity model's place, with inputs of one number throughout, in a
// batch of one. With --tls-cert, whose certificate is its own authority, or with --tokens the same server without them
// takes the echo's place:
//   openssl req -x509 -newkey rsa:2048 -nodes -keyout KEY -out CERT -subj /CN=localhost -addext
//   subjectAltName=IP:127.0.0.1
//
// Prints the p50 and p99 of one client, and requests per second of many. A third row is the same echo, which answers
// once it was busy for as long as the model computes: client and processors have then rested as long, so that waking
// them is in both. `-o json` prints one JSON object, with the means of the server's own stages for one client.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "proto/grpc_service.grpc.pb.h"
#include "server/server.h"
#include "server/telemetry/logging.h"
#include "tests/bench/echo_server.h"
#include "tests/server/repository_directory.h"

namespace swizzle {
namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using SteadyClock = std::chrono::steady_clock;

struct BenchOptions {
  int floats = 16;       // in the request and in the response
  int rounds = 20;       // each round calls both servers
  int requests = 500;    // a round, of one client
  double seconds = 0.5;  // a round, of many clients
  int clients = 16;
  std::string address;  // of a server that runs already
  std::string model = "identity";
  int length = 128;              // of dimensions that are free, beyond the batch
  std::string certificate, key;  // files; empty: no TLS
  int tokens = 0;                // in the file that is asked for one of them; 0: there is none
  bool json = false;

  bool beside_itself() const { return !certificate.empty() || tokens > 0; }
};

// ---- The server, in a process of its own, as the echo is ----

constexpr char kTokens[] = ".tokens/file";  // in the repository, where hidden folders are no models

std::string Token(int number) { return Concat("token-of-some-length-", number); }

[[noreturn]] void ServeIdentity(const RepositoryDirectory& directory, const BenchOptions& bench, bool guarded,
                                const std::function<void(int)>& tell_port) {
  InitLogging(LogFormat::kText, LogLevel::kWarning);
  ServerOptions options;
  options.model_repositories = {directory.path()};
  options.grpc_address = "127.0.0.1:0";
  options.metrics_address = "127.0.0.1:0";
  if (guarded) options.tls = {bench.certificate, bench.key, {}};
  if (guarded && bench.tokens > 0) options.auth_tokens = directory.path() / kTokens;
  const StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  SWIZZLE_CHECK(server.ok());
  tell_port((*server)->grpc_port());
  while (true) pause();
}

// ---- The client ----

using Stub = GRPCInferenceService::Stub;

// Where a server is, and what it wants to see.
struct Target {
  std::string address;
  std::string authority = {};  // PEM; empty: no TLS
  std::string token = {};      // empty: none
};

std::unique_ptr<Stub> Connect(const Target& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection for each client
  arguments.SetMaxReceiveMessageSize(-1);                   // no limit
  const auto credentials =
      target.authority.empty() ? grpc::InsecureChannelCredentials() : grpc::SslCredentials({target.authority, {}, {}});
  const auto channel = grpc::CreateCustomChannel(target.address, credentials, arguments);
  // Requests do not wait for a connection. Where many connect at once, a first attempt was seen to fail, which the
  // channel repeats.
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(20);
  SWIZZLE_CHECK(channel->WaitForConnected(deadline));
  return GRPCInferenceService::NewStub(channel);
}

void Show(const std::string& token, grpc::ClientContext& context) {
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

ModelInferResponse Infer(Stub& stub, const ModelInferRequest& request, const std::string& token = {}) {
  grpc::ClientContext context;
  Show(token, context);
  ModelInferResponse response;
  const grpc::Status status = stub.ModelInfer(&context, request, &response);
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", request.model_name().c_str(), status.error_message().c_str());
  SWIZZLE_CHECK(status.ok());
  return response;
}

template <typename T>
std::string Repeat(T value, int64_t times) {
  const std::vector<T> values(static_cast<size_t>(times), value);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// `elements` of a request's tensor: whole numbers are 1, which is a token's id, a mask's and a segment's value.
std::string Elements(const std::string& datatype, int64_t elements) {
  if (datatype == "INT64") return Repeat(int64_t{1}, elements);
  if (datatype == "INT32") return Repeat(int32_t{1}, elements);
  if (datatype == "UINT8") return Repeat(uint8_t{1}, elements);
  if (datatype != "FP32") std::fprintf(stderr, "inputs of type %s are unknown here\n", datatype.c_str());
  SWIZZLE_CHECK(datatype == "FP32");
  return Repeat(0.5f, elements);
}

ModelInferRequest IdentityRequest(int floats) {
  ModelInferRequest request;
  request.set_model_name("identity");
  auto& input = *request.add_inputs();
  input.set_name("X");
  input.set_datatype("FP32");
  input.add_shape(1);
  input.add_shape(floats);
  *request.add_raw_input_contents() = Repeat(0.5f, floats);
  return request;
}

// A batch of one for the model.
ModelInferRequest RequestFor(Stub& stub, const BenchOptions& options) {
  grpc::ClientContext context;
  inference::ModelMetadataRequest asked;
  inference::ModelMetadataResponse metadata;
  asked.set_name(options.model);
  const grpc::Status status = stub.ModelMetadata(&context, asked, &metadata);
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", options.model.c_str(), status.error_message().c_str());
  SWIZZLE_CHECK(status.ok());
  ModelInferRequest request;
  request.set_model_name(options.model);
  for (const auto& tensor : metadata.inputs()) {
    auto& input = *request.add_inputs();
    input.set_name(tensor.name());
    input.set_datatype(tensor.datatype());
    int64_t elements = 1;
    for (int i = 0; i < tensor.shape_size(); ++i) {
      const int64_t size = tensor.shape(i) >= 0 ? tensor.shape(i) : i == 0 ? 1 : options.length;
      input.add_shape(size);
      elements *= size;
    }
    *request.add_raw_input_contents() = Elements(tensor.datatype(), elements);
  }
  return request;
}

size_t InputBytes(const ModelInferRequest& request) {
  size_t bytes = 0;
  for (const std::string& input : request.raw_input_contents()) bytes += input.size();
  return bytes;
}

size_t OutputBytes(const ModelInferResponse& response) {
  size_t bytes = 0;
  for (const std::string& output : response.raw_output_contents()) bytes += output.size();
  return bytes;
}

class Client {
 public:
  Client(const Target& target, const ModelInferRequest& request)
      : stub_(Connect(target)),
        token_(target.token),
        request_(request),
        answer_bytes_(static_cast<size_t>(request.parameters().at(kAnswerBytes).int64_param())) {}

  void Infer() {
    const ModelInferResponse response = swizzle::Infer(*stub_, request_, token_);
    SWIZZLE_CHECK(OutputBytes(response) == answer_bytes_);
    compute_us_.push_back(static_cast<double>(response.parameters().at("swizzle_compute_us").int64_param()));
  }
  // Of all calls so far, as the server measured it.
  std::vector<double>& compute_us() { return compute_us_; }

  // The server's totals for the model since it started.
  inference::InferStatistics Statistics() const {
    grpc::ClientContext context;
    Show(token_, context);
    inference::ModelStatisticsRequest asked;
    inference::ModelStatisticsResponse totals;
    asked.set_name(request_.model_name());
    const grpc::Status status = stub_->ModelStatistics(&context, asked, &totals);
    if (!status.ok()) std::fprintf(stderr, "statistics: %s\n", status.error_message().c_str());
    SWIZZLE_CHECK(status.ok());
    return totals.model_stats(0).inference_stats();
  }

 private:
  const std::unique_ptr<Stub> stub_;
  const std::string token_;
  const ModelInferRequest request_;
  const size_t answer_bytes_;
  std::vector<double> compute_us_;
};

double MicrosecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count();
}

void MeasureLatency(Client& client, int requests, std::vector<double>& microseconds) {
  for (int i = 0; i < requests; ++i) {
    const SteadyClock::time_point start = SteadyClock::now();
    client.Infer();
    microseconds.push_back(MicrosecondsSince(start));
  }
}

// Requests per second of all clients together.
double MeasureRate(std::vector<std::unique_ptr<Client>>& clients, double seconds) {
  std::atomic<bool> stop = false;
  std::atomic<int64_t> requests = 0;
  std::vector<std::thread> threads;
  const SteadyClock::time_point start = SteadyClock::now();
  for (auto& client : clients) {
    threads.emplace_back([&] {
      for (; !stop; ++requests) client->Infer();
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(requests) / (MicrosecondsSince(start) * 1e-6);
}

double Quantile(std::vector<double>& values, double q) {
  const auto nth = values.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

struct Figures {
  double p50_us = 0, p99_us = 0;   // of one client
  double compute_p50_us = 0;       // of these, in the model
  double requests_per_second = 0;  // the median round
};

// Means of one client's requests, as the server measured them.
struct Stages {
  double queue_us = 0, input_us = 0, compute_us = 0, output_us = 0;
};

Stages StagesBetween(const inference::InferStatistics& before, const inference::InferStatistics& after) {
  const auto mean = [](const inference::StatisticDuration& from, const inference::StatisticDuration& to) {
    const auto count = static_cast<double>(std::max<uint64_t>(to.count() - from.count(), 1));
    return static_cast<double>(to.ns() - from.ns()) * 1e-3 / count;
  };
  return {mean(before.queue(), after.queue()), mean(before.compute_input(), after.compute_input()),
          mean(before.compute_infer(), after.compute_infer()), mean(before.compute_output(), after.compute_output())};
}

struct Measurement {
  Figures echo, busy_echo, served;  // the busy echo has no rate
  Stages stages;
};

// All are measured in turn, so that what disturbs one disturbs the others.
class Bench {
 public:
  Bench(const Target& echo, const Target& server, const ModelInferRequest& request, const BenchOptions& options)
      : options_(options) {
    for (int i = 0; i < options.clients; ++i) {
      echoes_.push_back(std::make_unique<Client>(echo, request));
      served_.push_back(std::make_unique<Client>(server, request));
    }
    std::vector<double> warm_up;
    MeasureLatency(*echoes_.front(), options.requests, warm_up);
    MeasureLatency(*served_.front(), options.requests, warm_up);
    ModelInferRequest busy = request;
    const double compute_us = Quantile(served_.front()->compute_us(), 0.5);
    (*busy.mutable_parameters())[kBusyUs].set_int64_param(static_cast<int64_t>(compute_us));
    busy_echo_ = std::make_unique<Client>(echo, busy);
    MeasureLatency(*busy_echo_, options.requests, warm_up);
  }

  Measurement Measure() {
    Measurement result;
    const inference::InferStatistics before = served_.front()->Statistics();
    const std::vector<Client*> alone = {echoes_.front().get(), busy_echo_.get(), served_.front().get()};
    std::vector<std::vector<double>> latencies(alone.size());
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t i = 0; i < alone.size(); ++i) MeasureLatency(*alone[i], options_.requests, latencies[i]);
    }
    result.stages = StagesBetween(before, served_.front()->Statistics());
    const std::vector<Figures*> figures = {&result.echo, &result.busy_echo, &result.served};
    for (size_t i = 0; i < alone.size(); ++i) {
      const double compute_us = Quantile(alone[i]->compute_us(), 0.5);
      *figures[i] = {Quantile(latencies[i], 0.5), Quantile(latencies[i], 0.99), compute_us, 0};
    }
    std::vector<double> echo_rates, served_rates;
    for (int round = 0; round < options_.rounds; ++round) {
      echo_rates.push_back(MeasureRate(echoes_, options_.seconds));
      served_rates.push_back(MeasureRate(served_, options_.seconds));
    }
    result.echo.requests_per_second = Quantile(echo_rates, 0.5);
    result.served.requests_per_second = Quantile(served_rates, 0.5);
    return result;
  }

 private:
  const BenchOptions& options_;
  std::vector<std::unique_ptr<Client>> echoes_, served_;
  std::unique_ptr<Client> busy_echo_;
};

nlohmann::json Json(const Figures& figures) {
  return {{"p50_us", figures.p50_us},
          {"p99_us", figures.p99_us},
          {"compute_p50_us", figures.compute_p50_us},
          {"requests_per_second", figures.requests_per_second}};
}

nlohmann::json Json(const Stages& stages) {
  return {{"queue_us", stages.queue_us},
          {"input_us", stages.input_us},
          {"compute_us", stages.compute_us},
          {"output_us", stages.output_us}};
}

void PrintRow(std::string_view name, const Figures& figures) {
  const std::string rate = figures.requests_per_second > 0 ? Concat(std::llround(figures.requests_per_second)) : "-";
  std::printf("%-24.24s %8.1f %8.1f %10s\n", std::string(name).c_str(), figures.p50_us, figures.p99_us, rate.c_str());
}

void Print(const Measurement& measured, const ModelInferRequest& request, const BenchOptions& options) {
  const Figures &echo = measured.echo, &model = measured.served;
  const double added_us = model.p50_us - echo.p50_us;
  const double rate_ratio = model.requests_per_second / echo.requests_per_second;
  const int64_t answer_bytes = request.parameters().at(kAnswerBytes).int64_param();
  if (options.json) {
    const nlohmann::json report = {{"model", options.model},
                                   {"payload_bytes", InputBytes(request)},
                                   {"answer_bytes", answer_bytes},
                                   {"clients", options.clients},
                                   {"echo", Json(echo)},
                                   {"served", Json(model)},
                                   {"busy_echo", Json(measured.busy_echo)},
                                   {"stages", Json(measured.stages)},
                                   {"added_p50_us", added_us},
                                   {"rate_ratio", rate_ratio}};
    std::printf("%s\n", report.dump().c_str());
    return;
  }
  std::printf("%8zu bytes             p50 us   p99 us   requests/s at %d clients\n", InputBytes(request),
              options.clients);
  PrintRow(options.beside_itself() ? "without TLS and tokens" : "bare gRPC echo", echo);
  PrintRow(options.beside_itself() ? "the same again" : "that is busy as long", measured.busy_echo);
  PrintRow(options.model, model);
  std::printf("added                    %8.1f %8.1f %9.0f%%; of the p50 %.0f us compute\n", added_us,
              model.p99_us - echo.p99_us, 100 * rate_ratio, model.compute_p50_us);
  std::printf("means: queue %.1f, gathering %.1f, compute %.1f, scattering %.1f us\n", measured.stages.queue_us,
              measured.stages.input_us, measured.stages.compute_us, measured.stages.output_us);
}

std::string ReadText(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string LocalAddress(int port) { return Concat("127.0.0.1:", port); }

int Run(const BenchOptions& options) {
  RepositoryDirectory directory;
  directory.Write("identity/config.pbtxt", IdentityConfig("TYPE_FP32", Concat("[", options.floats, "]"),
                                                          "max_batch_size: 64 dynamic_batching { }"));
  std::string tokens;
  for (int i = 1; i <= options.tokens; ++i) tokens += Token(i) + "\n";
  directory.Write(kTokens, tokens);
  const ServerProcess echo([&](const auto& tell_port) {
    if (options.beside_itself()) ServeIdentity(directory, options, false, tell_port);
    ServeEcho(tell_port);
  });
  std::unique_ptr<ServerProcess> identity;
  if (options.address.empty()) {
    identity = std::make_unique<ServerProcess>(
        [&](const auto& tell_port) { ServeIdentity(directory, options, true, tell_port); });
  }
  Target target = {identity ? LocalAddress(identity->port()) : options.address};
  if (!options.certificate.empty()) target.authority = ReadText(options.certificate);
  if (options.tokens > 0) target.token = Token(options.tokens);
  const std::unique_ptr<Stub> stub = Connect(target);
  ModelInferRequest request = identity ? IdentityRequest(options.floats) : RequestFor(*stub, options);
  const auto answer_bytes = static_cast<int64_t>(OutputBytes(Infer(*stub, request, target.token)));
  (*request.mutable_parameters())[kAnswerBytes].set_int64_param(answer_bytes);
  Bench bench({LocalAddress(echo.port())}, target, request, options);
  Print(bench.Measure(), request, options);
  return 0;
}

}  // namespace
}  // namespace swizzle

int main(int argc, char** argv) {
  swizzle::BenchOptions options;
  std::string output = "text";
  CLI::App app("Overhead of the server over a bare gRPC echo", "echo_overhead_bench");
  app.add_option("--floats", options.floats, "FP32 elements in a request")->check(CLI::Range(1, 1 << 22));
  app.add_option("--rounds", options.rounds, "Rounds, each of both servers")->check(CLI::Range(1, 1000));
  app.add_option("--requests", options.requests, "Requests of one client in a round")->check(CLI::Range(1, 1000000));
  app.add_option("--seconds", options.seconds, "Length of a round of all clients")->check(CLI::Range(0.01, 60.0));
  app.add_option("--clients", options.clients, "Clients at once")->check(CLI::Range(1, 1024));
  app.add_option("--address", options.address, "HOST:PORT of a server that runs already");
  app.add_option("--model", options.model, "Of that server");
  app.add_option("--length", options.length, "Of free dimensions beyond the batch")->check(CLI::Range(1, 1 << 20));
  auto* const certificate = app.add_option("--tls-cert", options.certificate, "Serve over TLS with this certificate");
  certificate->needs(app.add_option("--tls-key", options.key, "Its key"));
  app.add_option("--tokens", options.tokens, "Ask for one of so many tokens")->check(CLI::Range(0, 1000));
  app.add_option("-o,--output", output, "text or json")->check(CLI::IsMember({"text", "json"}));
  CLI11_PARSE(app, argc, argv);
  options.json = output == "json";
  return swizzle::Run(options);
}
