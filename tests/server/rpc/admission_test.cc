#include "server/rpc/admission.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

#include "proto/grpc_service.grpc.pb.h"
#include "server/rpc/grpc_listener.h"
#include "server/rpc/inference_service.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

// A server that asks for tokens, and a client of it.
class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    std::ofstream(folder_ / "tokens") << "infer token-to-infer-with\nmetadata token-to-ask-with-it\n";
    authorization_ = *Authorization::Load(folder_ / "tokens");
    Doorkeeper doorkeeper;
    doorkeeper.admission.authorization = authorization_.get();
    listener_ = *GrpcListener::Start("127.0.0.1:0", Settle({}, 1 << 30, 1024), {&service_}, nullptr, doorkeeper);
    stub_ = inference::GRPCInferenceService::NewStub(
        grpc::CreateChannel(Concat("127.0.0.1:", listener_->port()), grpc::InsecureChannelCredentials()));
  }

  static void Show(grpc::ClientContext& context, const std::string& token) {
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  }
  grpc::StatusCode AskForMetadata(const std::string& token) {
    grpc::ClientContext context;
    Show(context, token);
    inference::ServerMetadataResponse response;
    return stub_->ServerMetadata(&context, {}, &response).error_code();
  }
  grpc::StatusCode OpenStream(const std::string& token) {
    grpc::ClientContext context;
    Show(context, token);
    return stub_->ModelStreamInfer(&context)->Finish().error_code();
  }

  TemporaryFolder folder_;
  std::unique_ptr<Authorization> authorization_;
  InferenceService service_;
  std::unique_ptr<GrpcListener> listener_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

TEST_F(AdmissionTest, CallsReachTheirServiceOrNothingDoes) {
  EXPECT_EQ(AskForMetadata(""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(AskForMetadata("token-that-nobody-has"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(AskForMetadata("token-to-infer-with"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(AskForMetadata("token-to-ask-with-it"), grpc::StatusCode::OK);
}

TEST_F(AdmissionTest, StreamsDoAsWell) {
  EXPECT_EQ(OpenStream(""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(OpenStream("token-to-ask-with-it"), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(AdmissionTest, TheServerLivesForAll) {
  grpc::ClientContext context;
  inference::ServerLiveResponse response;
  EXPECT_TRUE(stub_->ServerLive(&context, {}, &response).ok());
  EXPECT_TRUE(response.live());
}

TEST(NewAdmittedServiceTest, WantsAServiceThatThereIs) {
  InferenceService service;
  EXPECT_EQ(NewAdmittedService({&service, "no.Service"}, {}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace swizzle
