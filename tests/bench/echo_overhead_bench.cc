// What the server adds to gRPC: ModelInfer of the identity model, against a bare callback service that answers the same
// request with the same response, both served by a process of their own and called from this one, in turn.
//
// Prints the p50 and p99 of one client, and requests per second of many. `-o json` prints one JSON object.
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "proto/grpc_service.grpc.pb.h"
#include "server/logging.h"
#include "server/server.h"
#include "tests/server/repository_directory.h"

namespace swizzle {
namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using SteadyClock = std::chrono::steady_clock;

struct BenchOptions {
  int floats = 16;         // in the request and in the response
  int rounds = 20;         // each round calls both servers
  int requests = 500;      // a round, of one client
  double seconds = 0.5;    // a round, of many clients
  int clients = 16;
  bool json = false;
};

// ---- The two servers, each in a process of its own ----

// Answers as the identity model does, and does nothing else.
class BareEcho final : public GRPCInferenceService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const ModelInferRequest* request,
                                       ModelInferResponse* response) override {
    response->set_model_name(request->model_name());
    response->set_model_version("1");
    (*response->mutable_parameters())["swizzle_queue_us"].set_int64_param(1);
    (*response->mutable_parameters())["swizzle_compute_us"].set_int64_param(1);
    auto& output = *response->add_outputs();
    output.set_name("Y");
    output.set_datatype(request->inputs(0).datatype());
    *output.mutable_shape() = request->inputs(0).shape();
    response->add_raw_output_contents(request->raw_input_contents(0));
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// Serves for ever; tells its port once it does.
[[noreturn]] void ServeEcho(const std::function<void(int)>& tell_port) {
  BareEcho service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  SWIZZLE_CHECK(server != nullptr);
  tell_port(port);
  server->Wait();
  _exit(0);
}

[[noreturn]] void ServeIdentity(const RepositoryDirectory& directory, const std::function<void(int)>& tell_port) {
  InitLogging(LogFormat::kText, LogLevel::kWarning);
  ServerOptions options;
  options.model_repository = directory.path();
  options.grpc_address = "127.0.0.1:0";
  options.metrics_address = "127.0.0.1:0";
  const StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  SWIZZLE_CHECK(server.ok());
  tell_port((*server)->grpc_port());
  while (true) pause();
}

// A process that serves on port() until the object goes.
class ServerProcess {
 public:
  // gRPC must not have been used in this process before.
  explicit ServerProcess(const std::function<void(const std::function<void(int)>&)>& serve) {
    int ends[2];
    SWIZZLE_CHECK(pipe(ends) == 0);
    pid_ = fork();
    SWIZZLE_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve([&](int port) { SWIZZLE_CHECK(write(ends[1], &port, sizeof(port)) == sizeof(port)); });
    }
    close(ends[1]);
    SWIZZLE_CHECK(read(ends[0], &port_, sizeof(port_)) == sizeof(port_));
    close(ends[0]);
  }
  ~ServerProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  int port() const { return port_; }

 private:
  pid_t pid_ = 0;
  int port_ = 0;
};

// ---- The client ----

class Client {
 public:
  Client(int port, const BenchOptions& options) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection for each client
    stub_ = GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
        Concat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments));
    request_.set_model_name("identity");
    auto& input = *request_.add_inputs();
    input.set_name("X");
    input.set_datatype("FP32");
    input.add_shape(1);
    input.add_shape(options.floats);
    request_.add_raw_input_contents(std::string(static_cast<size_t>(options.floats) * sizeof(float), '\1'));
  }

  void Infer() {
    grpc::ClientContext context;
    ModelInferResponse response;
    const grpc::Status status = stub_->ModelInfer(&context, request_, &response);
    SWIZZLE_CHECK(status.ok() && response.raw_output_contents(0) == request_.raw_input_contents(0));
  }

 private:
  std::unique_ptr<GRPCInferenceService::Stub> stub_;
  ModelInferRequest request_;
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
  double p50_us = 0, p99_us = 0;
  double requests_per_second = 0;  // the median round
};

// [server]: figures of both, measured in turn so that what disturbs one disturbs the other.
std::vector<Figures> Measure(const std::vector<int>& ports, const BenchOptions& options) {
  const size_t servers = ports.size();
  std::vector<std::vector<std::unique_ptr<Client>>> clients(servers);
  std::vector<std::vector<double>> latencies(servers), rates(servers);
  for (size_t s = 0; s < servers; ++s) {
    for (int i = 0; i < options.clients; ++i) clients[s].push_back(std::make_unique<Client>(ports[s], options));
    std::vector<double> warm_up;
    MeasureLatency(*clients[s].front(), options.requests, warm_up);
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t s = 0; s < servers; ++s) MeasureLatency(*clients[s].front(), options.requests, latencies[s]);
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t s = 0; s < servers; ++s) rates[s].push_back(MeasureRate(clients[s], options.seconds));
  }
  std::vector<Figures> figures(servers);
  for (size_t s = 0; s < servers; ++s) {
    figures[s] = {Quantile(latencies[s], 0.5), Quantile(latencies[s], 0.99), Quantile(rates[s], 0.5)};
  }
  return figures;
}

nlohmann::json Json(const Figures& figures) {
  return {{"p50_us", figures.p50_us}, {"p99_us", figures.p99_us}, {"requests_per_second", figures.requests_per_second}};
}

void Print(const Figures& echo, const Figures& identity, const BenchOptions& options) {
  const double added_us = identity.p50_us - echo.p50_us;
  const double rate_ratio = identity.requests_per_second / echo.requests_per_second;
  if (options.json) {
    const nlohmann::json report = {{"payload_bytes", options.floats * 4}, {"clients", options.clients},
                                   {"echo", Json(echo)},                  {"identity", Json(identity)},
                                   {"added_p50_us", added_us},            {"rate_ratio", rate_ratio}};
    std::printf("%s\n", report.dump().c_str());
    return;
  }
  std::printf("%8d bytes             p50 us   p99 us   requests/s at %d clients\n", options.floats * 4,
              options.clients);
  std::printf("bare gRPC echo           %8.1f %8.1f %10.0f\n", echo.p50_us, echo.p99_us, echo.requests_per_second);
  std::printf("identity model           %8.1f %8.1f %10.0f\n", identity.p50_us, identity.p99_us,
              identity.requests_per_second);
  std::printf("added                    %8.1f %8.1f %9.0f%%\n", added_us, identity.p99_us - echo.p99_us,
              100 * rate_ratio);
}

int Run(const BenchOptions& options) {
  RepositoryDirectory directory;
  directory.Write("identity/config.pbtxt", IdentityConfig("TYPE_FP32", Concat("[", options.floats, "]"),
                                                          "max_batch_size: 64 dynamic_batching { }"));
  const ServerProcess echo([](const auto& tell_port) { ServeEcho(tell_port); });
  const ServerProcess identity([&](const auto& tell_port) { ServeIdentity(directory, tell_port); });
  const std::vector<Figures> figures = Measure({echo.port(), identity.port()}, options);
  Print(figures[0], figures[1], options);
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
  app.add_option("-o,--output", output, "text or json")->check(CLI::IsMember({"text", "json"}));
  CLI11_PARSE(app, argc, argv);
  options.json = output == "json";
  return swizzle::Run(options);
}
