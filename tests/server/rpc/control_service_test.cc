#include "server/rpc/control_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/server/served_models.h"

namespace swizzle {
namespace {

using grpc::StatusCode;
using inference::GRPCInferenceService;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Stub = GRPCInferenceService::Stub;

class ControlServiceTest : public ServedModels {
 protected:
  void ServeWithControl(ServerOptions options = {}) {
    options.control_address = "127.0.0.1:0";
    options.model_control = ModelControl::kExplicit;
    Serve(std::move(options));
    control_ = GRPCInferenceService::NewStub(
        grpc::CreateChannel(Concat("127.0.0.1:", server_->control_port()), grpc::InsecureChannelCredentials()));
  }

  template <typename Request, typename Response>
  grpc::Status Order(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request, Response& response) {
    grpc::ClientContext context;
    return ((*control_).*method)(&context, request, &response);
  }
  grpc::Status Load(const inference::RepositoryModelLoadRequest& request) {
    inference::RepositoryModelLoadResponse response;
    return Order(&Stub::RepositoryModelLoad, request, response);
  }
  grpc::Status Load(const std::string& model) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name(model);
    return Load(request);
  }
  grpc::Status Unload(const std::string& model) {
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name(model);
    (*request.mutable_parameters())["unload_dependents"].set_bool_param(true);
    inference::RepositoryModelUnloadResponse response;
    return Order(&Stub::RepositoryModelUnload, request, response);
  }
  grpc::Status LoadWith(const std::string& parameter, const std::string& value) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name("m");
    (*request.mutable_parameters())[parameter].set_string_param(value);
    return Load(request);
  }

  std::unique_ptr<Stub> control_;
};

TEST_F(ControlServiceTest, LoadsAndUnloads) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  EXPECT_EQ(Infer(InferRequest("m")).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Health("m"), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  ASSERT_TRUE(Load("m").ok());
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
  EXPECT_EQ(Health("m"), grpc::health::v1::HealthCheckResponse::SERVING);
  ASSERT_TRUE(Unload("m").ok());
  EXPECT_EQ(Infer(InferRequest("m")).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Health("m"), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(ServerReady()) << "nobody waits for it";
}

TEST_F(ControlServiceTest, SaysWhatFailed) {
  directory_.Write("m/1/model.swz", "no model");
  ServeWithControl();
  EXPECT_EQ(Load("nobody").error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Unload("nobody").error_code(), StatusCode::NOT_FOUND);
  const grpc::Status status = Load("m");
  EXPECT_EQ(status.error_code(), StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("model 'm' failed to load: "), Not(HasSubstr(directory_.path().string()))));
  EXPECT_EQ(Load("").error_code(), StatusCode::INVALID_ARGUMENT);
  inference::RepositoryModelLoadRequest elsewhere;
  elsewhere.set_model_name("m");
  elsewhere.set_repository_name("other");
  EXPECT_EQ(Load(elsewhere).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ControlServiceTest, TakesTheNameWhereKServePutsIt) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  inference::RepositoryModelLoadRequest load;
  load.set_repository_name("m");
  inference::RepositoryModelLoadResponse loaded;
  ASSERT_TRUE(Order(&Stub::RepositoryModelLoad, load, loaded).ok());
  EXPECT_EQ(loaded.ShortDebugString(), "model_name: \"m\" is_loaded: true");
  inference::RepositoryModelUnloadRequest unload;
  unload.set_repository_name("m");
  inference::RepositoryModelUnloadResponse unloaded;
  ASSERT_TRUE(Order(&Stub::RepositoryModelUnload, unload, unloaded).ok());
  EXPECT_EQ(unloaded.ShortDebugString(), "model_name: \"m\" is_unloaded: true");
}

TEST_F(ControlServiceTest, OverridesAreRefusedUnlessAllowed) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  const grpc::Status refused = LoadWith("config", "{}");
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--allow-load-overrides"));
  EXPECT_EQ(LoadWith("file:1/model.onnx", "x").error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(LoadWith("colour", "red").error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ControlServiceTest, AConfigurationIsTakenWhereItMayBe) {
  directory_.Write("m/config.pbtxt", IdentityConfig("TYPE_FP32", "[4]", "max_batch_size: 8"));
  ServerOptions options;
  options.allow_load_overrides = true;
  ServeWithControl(options);
  constexpr char kConfig[] = R"({"backend": "identity", "max_batch_size": 2,
      "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": ["4"]}],
      "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": ["4"]}]})";
  ASSERT_TRUE(LoadWith("config", kConfig).ok());
  EXPECT_TRUE(Infer(InferRequest("m", 2)).ok());
  EXPECT_EQ(Infer(InferRequest("m", 3)).error_code(), StatusCode::INVALID_ARGUMENT);
  for (const char* bad : {"", "{", "[]", "{\"flying\": true}", "{\"max_batch_size\": -1}", "{\"name\": \"other\"}"}) {
    EXPECT_EQ(LoadWith("config", bad).error_code(), StatusCode::INVALID_ARGUMENT) << bad;
  }
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += "{\"input\":[";
  EXPECT_EQ(LoadWith("config", deep).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(LoadWith("config", std::string(2 << 20, ' ')).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Infer(InferRequest("m", 2)).ok()) << "as it was";
}

TEST_F(ControlServiceTest, TellsOfModelsAndInfersNothing) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(Order(&Stub::RepositoryIndex, inference::RepositoryIndexRequest(), index).ok());
  ASSERT_EQ(index.models_size(), 1);
  EXPECT_EQ(index.models(0).ShortDebugString(), "name: \"m\" state: \"UNAVAILABLE\" reason: \"not loaded\"");
  ASSERT_TRUE(Load("m").ok());
  inference::ModelInferResponse response;
  EXPECT_EQ(Order(&Stub::ModelInfer, InferRequest("m"), response).error_code(), StatusCode::PERMISSION_DENIED);
}

TEST_F(ControlServiceTest, NeedsExplicitControl) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServerOptions options;
  options.control_address = "127.0.0.1:0";
  Serve(options);
  control_ = GRPCInferenceService::NewStub(
      grpc::CreateChannel(Concat("127.0.0.1:", server_->control_port()), grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Load("m").error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(Unload("m").error_message(), HasSubstr("--model-control=explicit"));
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
}

TEST_F(ControlServiceTest, OrdersEndWhereTheServerDoes) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  server_->AnnounceShutdown();
  ASSERT_TRUE(Load("m").ok()) << "it goes on, until it drains";
  server_->Drain();
  EXPECT_EQ(Load("m").error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace swizzle
