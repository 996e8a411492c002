#include "server/rpc/health.h"

#include <gtest/gtest.h>

#include <memory>

namespace swizzle {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    stub_ = Health::NewStub(server_->InProcessChannel({}));
  }
  ~HealthTest() override {
    health_.EndWatches();
    server_->Shutdown();
  }

  grpc::Status Check(const std::string& service, HealthCheckResponse& response) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    return stub_->Check(&context, request, &response);
  }

  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> Watch(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return stub_->Watch(&watch_context_, request);
  }

  HealthService health_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Health::Stub> stub_;
  grpc::ClientContext watch_context_;
};

TEST_F(HealthTest, KnowsNothingItWasNotTold) {
  HealthCheckResponse response;
  EXPECT_EQ(Check("", response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(HealthTest, ChecksEachServiceByItself) {
  health_.SetServing("", false);
  health_.SetServing(kLivenessService, true);
  HealthCheckResponse response;
  ASSERT_TRUE(Check("", response).ok());
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  ASSERT_TRUE(Check("liveness", response).ok());
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
}

TEST_F(HealthTest, WatchesMayHearLater) {
  health_.SetServing("m", true);
  const auto watch = Watch("m");
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  health_.HoldWatches();
  health_.SetServing("m", false);
  ASSERT_TRUE(Check("m", response).ok());
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service("m");
  const auto late = stub_->Watch(&context, request);
  ASSERT_TRUE(late->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  health_.TellWatches();
  for (auto* const each : {watch.get(), late.get()}) {
    ASSERT_TRUE(each->Read(&response));
    EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  }
}

TEST_F(HealthTest, WatchTellsTheStatusAndItsChanges) {
  const auto watch = Watch("m");
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  health_.SetServing("m", true);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  health_.SetServing("m", true);
  health_.SetServing("other", false);
  health_.SetServing("m", false);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  watch_context_.TryCancel();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthTest, EndedWatchesTellWhy) {
  health_.SetServing("", true);
  const auto watch = Watch("");
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  health_.EndWatches();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);

  grpc::ClientContext context;
  const auto late = stub_->Watch(&context, HealthCheckRequest());
  while (late->Read(&response)) {
  }
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace swizzle
