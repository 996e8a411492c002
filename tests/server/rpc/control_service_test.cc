#include "server/rpc/control_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/served_models.h"
#include "tests/support/message_text.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using inference::GRPCInferenceService;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
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
  EXPECT_EQ(Infer(InferRequest("m")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Health("m"), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  ASSERT_TRUE(Load("m").ok());
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
  EXPECT_EQ(Health("m"), grpc::health::v1::HealthCheckResponse::SERVING);
  ASSERT_TRUE(Unload("m").ok());
  EXPECT_EQ(Infer(InferRequest("m")).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Health("m"), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(ServerReady()) << "nobody waits for it";
}

TEST_F(ControlServiceTest, SaysWhatFailed) {
  directory_.Write("m/1/model.swz", "no model");
  ServeWithControl();
  EXPECT_EQ(Load("nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Unload("nobody").error_code(), grpc::StatusCode::NOT_FOUND);
  const grpc::Status status = Load("m");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("model 'm' failed to load: "), Not(HasSubstr(directory_.path().string()))));
  EXPECT_EQ(Load("").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  inference::RepositoryModelLoadRequest elsewhere;
  elsewhere.set_model_name("m");
  elsewhere.set_repository_name("other");
  EXPECT_EQ(Load(elsewhere).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControlServiceTest, TakesTheNameWhereKServePutsIt) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  inference::RepositoryModelLoadRequest load;
  load.set_repository_name("m");
  inference::RepositoryModelLoadResponse loaded;
  ASSERT_TRUE(Order(&Stub::RepositoryModelLoad, load, loaded).ok());
  EXPECT_EQ(OneLineOf(loaded), "model_name: \"m\" is_loaded: true");
  inference::RepositoryModelUnloadRequest unload;
  unload.set_repository_name("m");
  inference::RepositoryModelUnloadResponse unloaded;
  ASSERT_TRUE(Order(&Stub::RepositoryModelUnload, unload, unloaded).ok());
  EXPECT_EQ(OneLineOf(unloaded), "model_name: \"m\" is_unloaded: true");
}

TEST_F(ControlServiceTest, OverridesAreRefusedUnlessAllowed) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  const grpc::Status refused = LoadWith("config", "{}");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--allow-load-overrides"));
  EXPECT_EQ(LoadWith("file:1/model.onnx", "x").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(LoadWith("colour", "red").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
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
  EXPECT_EQ(Infer(InferRequest("m", 3)).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  for (const char* bad : {"", "{", "[]", "{\"flying\": true}", "{\"max_batch_size\": -1}", "{\"name\": \"other\"}"}) {
    EXPECT_EQ(LoadWith("config", bad).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad;
  }
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += "{\"input\":[";
  EXPECT_EQ(LoadWith("config", deep).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(LoadWith("config", std::string(2 << 20, ' ')).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Infer(InferRequest("m", 2)).ok()) << "as it was";
}

constexpr char kBroughtConfig[] = R"({"backend": "identity", "max_batch_size": 2,
    "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": ["4"]}],
    "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": ["4"]}],
    "version_policy": {"all": {}}})";

inference::RepositoryModelLoadRequest Bringing(const std::string& model, const std::vector<std::string>& files) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name(model);
  (*request.mutable_parameters())["config"].set_string_param(kBroughtConfig);
  for (const std::string& file : files) (*request.mutable_parameters())["file:" + file].set_bytes_param("content");
  return request;
}

TEST_F(ControlServiceTest, FilesStandForTheModelsFolder) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServerOptions options;
  options.allow_load_overrides = true;
  ServeWithControl(options);
  ASSERT_TRUE(Load("m").ok());
  ASSERT_TRUE(Load(Bringing("m", {"2/model", "5/weights/data"})).ok());
  EXPECT_TRUE(Infer(InferRequest("m", 2)).ok());
  inference::ModelMetadataRequest asked;
  inference::ModelMetadataResponse metadata;
  asked.set_name("m");
  ASSERT_TRUE(Order(&Stub::ModelMetadata, asked, metadata).ok());
  EXPECT_THAT(metadata.versions(), ::testing::ElementsAre("2", "5"));
  ASSERT_TRUE(Load(Bringing("other", {"1/model"})).ok()) << "of which there is no folder";
  EXPECT_TRUE(Infer(InferRequest("other", 2)).ok());
  ASSERT_TRUE(Load("m").ok());
  ASSERT_TRUE(Order(&Stub::ModelMetadata, asked, metadata).ok());
  EXPECT_THAT(metadata.versions(), ::testing::ElementsAre("1")) << "of the folder";
  EXPECT_THAT(Load("other").error_message(), HasSubstr("there is no model 'other'"));
  EXPECT_TRUE(Infer(InferRequest("other", 2)).ok()) << "the old one goes on";
}

TEST_F(ControlServiceTest, FilesLieInAFolderThatGoes) {
  TemporaryFolder temporary;
  setenv("TMPDIR", temporary.path().c_str(), 1);
  ServerOptions options;
  options.allow_load_overrides = true;
  ServeWithControl(options);
  ASSERT_TRUE(Load(Bringing("m", {"1/model"})).ok());
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
  inference::RepositoryModelLoadRequest broken = Bringing("m", {"1/model.onnx"});
  (*broken.mutable_parameters())["config"].set_string_param("{}");
  const grpc::Status refused = Load(broken);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(refused.error_message(), Not(HasSubstr(temporary.path().string())));
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
  setenv("TMPDIR", (temporary.path() / "nowhere").c_str(), 1);
  const grpc::Status nowhere = Load(Bringing("m", {"1/model"}));
  EXPECT_EQ(nowhere.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(nowhere.error_message(), AllOf(HasSubstr("$TMPDIR"), Not(HasSubstr("nowhere"))));
  EXPECT_TRUE(Infer(InferRequest("m", 2)).ok()) << "as it was";
  unsetenv("TMPDIR");
}

TEST_F(ControlServiceTest, FilesStayWithinTheirFolder) {
  ServerOptions options;
  options.allow_load_overrides = true;
  ServeWithControl(options);
  for (const char* path :
       {"", "/", "/etc/x", "..", "../x", "1/../../x", "1/./x", "1//x", "1/x/", "1/2/3/4/5", "1/\n"}) {
    const grpc::Status refused = Load(Bringing("m", {path}));
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << path;
  }
  EXPECT_EQ(Load(Bringing("m", {std::string(300, 'x')})).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Load(Bringing("../m", {"1/model"})).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(Load(Bringing("m", {"1", "1/model"})).ok()) << "a file that is a folder, too";
  inference::RepositoryModelLoadRequest alone = Bringing("m", {"1/model"});
  alone.mutable_parameters()->erase("config");
  EXPECT_THAT(Load(alone).error_message(), HasSubstr("'config' is missing"));
  (*alone.mutable_parameters())["file:1/model"].set_string_param("text");
  EXPECT_THAT(Load(alone).error_message(), HasSubstr("is bytes"));
}

TEST_F(ControlServiceTest, TellsOfModelsAndInfersNothing) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(Order(&Stub::RepositoryIndex, inference::RepositoryIndexRequest(), index).ok());
  ASSERT_EQ(index.models_size(), 1);
  EXPECT_EQ(OneLineOf(index.models(0)), "name: \"m\" state: \"UNAVAILABLE\" reason: \"not loaded\"");
  ASSERT_TRUE(Load("m").ok());
  inference::ModelInferResponse response;
  EXPECT_EQ(Order(&Stub::ModelInfer, InferRequest("m"), response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ControlServiceTest, NeedsExplicitControl) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServerOptions options;
  options.control_address = "127.0.0.1:0";
  Serve(options);
  control_ = GRPCInferenceService::NewStub(
      grpc::CreateChannel(Concat("127.0.0.1:", server_->control_port()), grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Load("m").error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(Unload("m").error_message(), HasSubstr("--model-control=explicit"));
  EXPECT_TRUE(Infer(InferRequest("m")).ok());
}

TEST_F(ControlServiceTest, OrdersEndWhereTheServerDoes) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  ServeWithControl();
  server_->AnnounceShutdown();
  ASSERT_TRUE(Load("m").ok()) << "it goes on, until it drains";
  server_->Drain();
  EXPECT_EQ(Load("m").error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace swizzle
