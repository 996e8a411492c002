#include "server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "server/shutdown_signals.h"
#include "tests/server/served_models.h"
#include "tests/support/http_get.h"
#include "tests/support/process_limits.h"

namespace swizzle {
namespace {

using grpc::StatusCode;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Stub = inference::GRPCInferenceService::Stub;

ServerOptions LocalOptions(const RepositoryDirectory& directory) {
  ServerOptions options;
  options.model_repositories = {directory.path()};
  options.grpc_address = "127.0.0.1:0";
  options.metrics_address = "127.0.0.1:0";
  return options;
}

class ServerTest : public ServedModels {
 protected:
  void ServeWhenReady(std::string_view rule) {
    ServerOptions options;
    options.ready = *ParseReadyRule(rule);
    Serve(options);
  }
};

TEST_F(ServerTest, IsReadyWhenEveryModelIs) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  EXPECT_TRUE(ServerReady());
  EXPECT_EQ(Health(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(Health("liveness"), HealthCheckResponse::SERVING);
  EXPECT_EQ(Health("m"), HealthCheckResponse::SERVING);
  EXPECT_EQ(Health("other"), HealthCheckResponse::UNKNOWN);
}

TEST_F(ServerTest, AModelNamedAsTheLivenessServiceLeavesItAlone) {
  directory_.Write("liveness/config.pbtxt", "backend: 'tensorrt'");
  Serve();
  EXPECT_EQ(Health("liveness"), HealthCheckResponse::SERVING);
  server_->AnnounceShutdown();
  EXPECT_EQ(Health("liveness"), HealthCheckResponse::SERVING);
}

TEST_F(ServerTest, AFailedModelKeepsItUnreadyAndTheOthersServing) {
  directory_.Write("bad/config.pbtxt", "backend: 'tensorrt'");
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  EXPECT_FALSE(ServerReady());
  EXPECT_EQ(Health(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health("bad"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health("m"), HealthCheckResponse::SERVING);
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
  const grpc::Status status = Infer(InferRequest("bad"));
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("model 'bad' failed to load: config.pbtxt: 'backend' is 'tensorrt'"));
  EXPECT_THAT(server_->metrics().Text(), HasSubstr("swizzle_requests_total{code=\"INTERNAL\",model=\"bad\""));
  inference::ModelReadyRequest request;
  request.set_name("bad");
  inference::ModelReadyResponse response;
  EXPECT_TRUE(Call(&Stub::ModelReady, request, response).ok());
  EXPECT_FALSE(response.ready());
}

TEST_F(ServerTest, ReadinessNamesWhatIsNotReadyAndWhy) {
  directory_.Write("bad/config.pbtxt", "backend: 'tensorrt'");
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  const std::string answer = HttpGet(server_->metrics_port(), "/readyz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("not ready\nmodel 'bad' failed: config.pbtxt: 'backend' is 'tensorrt'"));
}

TEST_F(ServerTest, AnyModelMayMakeItReady) {
  directory_.Write("bad/config.pbtxt", "backend: 'tensorrt'");
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWhenReady("any");
  EXPECT_TRUE(ServerReady());
  EXPECT_EQ(Health(""), HealthCheckResponse::SERVING);
  EXPECT_THAT(HttpGet(server_->metrics_port(), "/readyz"), HasSubstr("ok\nmodel 'bad' failed: "));
}

TEST_F(ServerTest, NamedModelsMayMakeItReady) {
  directory_.Write("bad/config.pbtxt", "backend: 'tensorrt'");
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWhenReady("m");
  EXPECT_TRUE(ServerReady());
  EXPECT_EQ(Health(""), HealthCheckResponse::SERVING);
}

TEST_F(ServerTest, AModelThatIsNamedAndNotThereKeepsItUnready) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWhenReady("m,other");
  EXPECT_FALSE(ServerReady());
  EXPECT_THAT(HttpGet(server_->metrics_port(), "/readyz"), HasSubstr("there is no model 'other'"));
}

TEST_F(ServerTest, ThePortFileNamesBothPorts) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServerOptions options;
  options.port_file = directory_.path() / "ports.json";
  Serve(options);
  std::ifstream file(options.port_file);
  const nlohmann::json ports = nlohmann::json::parse(file);
  EXPECT_EQ(ports, nlohmann::json({{"grpc", server_->grpc_port()}, {"metrics", server_->metrics_port()}}));
}

TEST_F(ServerTest, APortFileThatCannotBeWrittenIsAnError) {
  ServerOptions options = LocalOptions(directory_);
  options.port_file = directory_.path() / "no" / "such" / "directory";
  EXPECT_THAT(std::string(Server::Start(options).status().message()), HasSubstr("cannot write the port file"));
}

TEST_F(ServerTest, AMissingRepositoryIsAnError) {
  ServerOptions options = LocalOptions(directory_);
  options.model_repositories = {directory_.path() / "nowhere"};
  EXPECT_EQ(Server::Start(options).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ServerTest, ATakenAddressIsNamed) {
  Serve();
  ServerOptions second = LocalOptions(directory_);
  second.grpc_address = Concat("127.0.0.1:", server_->grpc_port());
  const auto server = Server::Start(second);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("cannot listen on " + second.grpc_address));
}

TEST_F(ServerTest, OversizedMessagesAreRefusedAndTheServerGoesOn) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServerOptions options;
  options.rpc.max_message_bytes = 4096;
  Serve(options);
  inference::ModelInferRequest request = InferRequest("m");
  request.mutable_raw_input_contents(0)->resize(8192);
  EXPECT_EQ(Infer(request).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
}

TEST_F(ServerTest, AnAnnouncedShutdownStillServes) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  server_->AnnounceShutdown();
  EXPECT_FALSE(ServerReady());
  EXPECT_EQ(Health(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health("m"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Health("liveness"), HealthCheckResponse::SERVING);
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
}

// Of this process, listening on the port; -1: there is none.
int ListeningDescriptor(int port) {
  for (int descriptor = 0; descriptor < 4096; ++descriptor) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    sockaddr_in address = {};
    size = sizeof(address);
    getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    if (ntohs(address.sin_port) == port) return descriptor;
  }
  return -1;
}

TEST_F(ServerTest, IsNotLiveOnceNobodyCanConnect) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  EXPECT_THAT(HttpGet(server_->metrics_port(), "/livez"), StartsWith("HTTP/1.1 200 "));
  const int listening = ListeningDescriptor(server_->grpc_port());
  ASSERT_NE(listening, -1);
  EXPECT_EQ(Health("liveness"), HealthCheckResponse::SERVING);
  ASSERT_EQ(shutdown(listening, SHUT_RDWR), 0);
  Await([&] { return HttpGet(server_->metrics_port(), "/livez").starts_with("HTTP/1.1 503 "); });
  Await([&] { return Health("liveness") == HealthCheckResponse::NOT_SERVING; });  // on a connection that is there
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
}

TEST_F(ServerTest, SaysWhatMemoryThereIsAndForWhom) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServerOptions options;
  options.memory_limit = 1 << 30;
  options.rpc.max_inflight_bytes = 64 << 20;
  options.rpc.transport_bytes = 32 << 20;
  options.max_run_bytes = 16 << 20;
  Serve(options);
  const std::string text = server_->metrics().Text();
  EXPECT_THAT(text, HasSubstr("swizzle_memory_limit_bytes 1073741824\n"));
  EXPECT_THAT(text, HasSubstr("swizzle_transport_bytes_limit 33554432\n"));
  EXPECT_THAT(text, HasSubstr("swizzle_memory_promised_bytes{to=\"requests\"} 100663296\n"));
  EXPECT_THAT(text, HasSubstr("swizzle_memory_promised_bytes{to=\"models\"} "));
  EXPECT_THAT(text, HasSubstr("swizzle_run_bytes 0\n"));
  EXPECT_THAT(text, HasSubstr("swizzle_run_bytes_limit 16777216\n"));
}

TEST_F(ServerTest, DrainFinishesWhatIsQueued) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  BatcherOf("m").HoldUntilQueued(100);
  InferCallInFlight first(*stub_, InferRequest("m")), second(*stub_, InferRequest("m"));
  Await([&] { return BatcherOf("m").queued() == 2; });
  server_->Drain();
  EXPECT_TRUE(first.Finish().ok());
  EXPECT_TRUE(second.Finish().ok());
  EXPECT_EQ(Infer(InferRequest("m")).error_code(), StatusCode::UNAVAILABLE);
}

// With GOAWAY, and as where gRPC is of a version that it can't be had from.
class DrainTest : public ServerTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    directory_.Write("m/config.pbtxt", IdentityConfig());
    ServerOptions options;
    options.says_goaway = GetParam();
    Serve(options);
  }
};

INSTANTIATE_TEST_SUITE_P(Goaway, DrainTest, ::testing::Bool(),
                         [](const auto& says) { return std::string(says.param ? "Said" : "Unknown"); });

TEST_P(DrainTest, ACallThatHasNotComeWholeEndsUnavailable) {
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  const auto call = stub.PrepareCall(&context, "/inference.GRPCInferenceService/ModelInfer", &queue);
  call->StartCall(nullptr);
  void* tag = nullptr;
  bool good = false;
  ASSERT_TRUE(queue.Next(&tag, &good));
  ASSERT_TRUE(good) << "its headers are sent";
  EXPECT_TRUE(Infer(InferRequest("m")).ok()) << "on the same connection, after them";
  server_->Drain();
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &good));
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE) << status.error_message();
  queue.Shutdown();
  while (queue.Next(&tag, &good)) {
  }
}

TEST_P(DrainTest, UnderLoadNoAcceptedCallIsLost) {
  std::atomic<int> good = 0, refused = 0, others = 0;
  std::atomic<bool> over = false;
  const auto send = [&] {
    const auto stub = inference::GRPCInferenceService::NewStub(NewChannel());
    while (!over) {
      grpc::ClientContext context;
      inference::ModelInferResponse response;
      const StatusCode code = stub->ModelInfer(&context, InferRequest("m"), &response).error_code();
      ++(code == StatusCode::OK ? good : code == StatusCode::UNAVAILABLE ? refused : others);
    }
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back(send);
  Await([&] { return good > 100; });
  server_->Drain();
  Await([&] { return refused > 8; });
  over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(others, 0);
  const std::string text = server_->metrics().Text();
  EXPECT_THAT(text,
              HasSubstr(Concat("swizzle_requests_total{code=\"OK\",model=\"m\",version=\"1\"} ", good.load(), "\n")))
      << "what was accepted was answered, and the answer came";
}

TEST_F(ServerTest, DrainEndsWatches) {
  Serve();
  grpc::ClientContext context;
  const auto watch = health_->Watch(&context, grpc::health::v1::HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  server_->Drain();
  while (watch->Read(&response)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), StatusCode::UNAVAILABLE);
}

// In a process of its own.
TEST(RunServerTest, WithoutThreadsItCannotStart) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a process that was forked from one with threads";
#endif
  const auto start = [] {
    const NoMoreThreads none;
    std::_Exit(RunServer({}));
  };
  EXPECT_EXIT(start(), ::testing::ExitedWithCode(kCannotStart), "");
}

// In a process of its own.
TEST(RunServerTest, WithoutFilesItCannotStart) {
  for (const rlim_t files : {4, 8, 12, 20}) {
    const auto start = [files] {
      const rlimit limit = {files, files};
      setrlimit(RLIMIT_NOFILE, &limit);
      std::_Exit(RunServer({}));
    };
    EXPECT_EXIT(start(), ::testing::ExitedWithCode(kCannotStart), "") << files;
  }
}

TEST(ServerStartTest, WhoStartsItHearsOfAnErrorBeforeItIsTakenDown) {
  ServerOptions options;
  options.model_repositories = {"/nonexistent"};
  options.grpc_address = options.metrics_address = "127.0.0.1:0";
  Status heard;
  const Status status = Server::Start(
                            options, [] {}, [] { return false; }, [&](const Status& error) { heard = error; })
                            .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(heard, status);
}

TEST(KernelListing, HasALineForEachKernel) {
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const std::string text = KernelListing(*backend);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<long>(backend->kernels().size()) + 1);
  for (const Kernel& kernel : backend->kernels()) EXPECT_THAT(text, HasSubstr(std::string(kernel.name)));
}

}  // namespace
}  // namespace swizzle
