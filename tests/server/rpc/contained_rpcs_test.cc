// What an RPC throws ends that call alone, with a status that says what happened.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "proto/grpc_service.grpc.pb.h"
#include "server/repository/load_order.h"
#include "server/rpc/grpc_listener.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/received_message.h"
#include "tests/support/process_limits.h"

namespace swizzle {
namespace {

using inference::GRPCInferenceService;
using ::testing::HasSubstr;
using Stub = GRPCInferenceService::Stub;

// Has no memory, or something worse, for whatever it is asked.
class ThrowingRepository final : public ModelRepository {
 public:
  bool out_of_memory = true;

  void Load(absl::FunctionRef<void()>) override {}
  StatusOr<std::shared_ptr<ServingModel>> Find(std::string_view, std::string_view) const override { Throw(); }
  std::vector<ModelStatus> List() const override { Throw(); }
  std::vector<int64_t> Versions(std::string_view) const override { Throw(); }
  void LoadModel(LoadOrder, Done) override { Throw(); }
  void UnloadModel(const std::string&, bool, Done) override { Throw(); }
  void StopLoading() override {}
  Readiness readiness() const override { Throw(); }
  int64_t promised_bytes() const override { return 0; }
  RunBytes run_bytes() const override { return {}; }
  void CountUnserved(std::string_view, swizzle::StatusCode) const override {}
  void StopTuning() override {}
  void AwaitTuner(absl::Duration) override {}
  void Drain(absl::FunctionRef<void()>) override {}

 private:
  [[noreturn]] void Throw() const {
    if (out_of_memory) throw std::bad_alloc();
    throw std::logic_error("map::at in /src/x.cc");
  }
};

class ContainedRpcsTest : public ::testing::Test {
 protected:
  ContainedRpcsTest() {
    service_.Serve(repository_);
    auto listener = GrpcListener::Start("127.0.0.1:0", Settle({}, 1 << 30, 1024), {&service_});
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    stub_ = GRPCInferenceService::NewStub(
        grpc::CreateChannel(Concat("127.0.0.1:", listener_->port()), grpc::InsecureChannelCredentials()));
  }

  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
    grpc::ClientContext context;
    Response response;
    return ((*stub_).*method)(&context, Request(), &response);
  }

  std::vector<grpc::Status> CallAll() {
    return {Call(&Stub::ServerReady),
            Call(&Stub::ModelReady),
            Call(&Stub::ModelMetadata),
            Call(&Stub::ModelConfig),
            Call(&Stub::ModelStatistics),
            Call(&Stub::RepositoryIndex),
            Infer()};
  }

  grpc::Status Infer() {
    grpc::ClientContext context;
    inference::ModelInferRequest request;
    request.set_model_name("m");
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, request, &response);
  }

  ThrowingRepository repository_;
  InferenceService service_;
  std::unique_ptr<GrpcListener> listener_;
  std::unique_ptr<Stub> stub_;
};

TEST_F(ContainedRpcsTest, SayWhereMemoryRanOut) {
  for (const grpc::Status& status : CallAll()) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("there is not enough memory to "));
  }
}

TEST_F(ContainedRpcsTest, KeepWhatElseIsThrownToTheServer) {
  repository_.out_of_memory = false;
  for (const grpc::Status& status : CallAll()) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("could not "));
  }
  EXPECT_TRUE(Call(&Stub::ServerLive).ok());
}

// In a process of its own.
TEST(ToGrpcTest, SaysNothingWhereThereIsNoMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers take address space of their own";
#endif
  const auto convert = [] {
    const Status status(swizzle::StatusCode::kInternal, std::string(size_t{64} << 20, 'x'));
    LimitAddresses(size_t{1} << 20);
    const grpc::Status converted = ToGrpc(status);
    std::_Exit(converted.error_code() == grpc::StatusCode::INTERNAL && converted.error_message().empty() ? 0 : 1);
  };
  EXPECT_EXIT(convert(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace swizzle
