// Models that are loaded, replaced and unloaded while others serve.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/packed/packed_writer.h"
#include "server/repository/load_order.h"
#include "server/repository/model_repository.h"
#include "tests/server/repository_directory.h"
#include "tests/server/served_models.h"
#include "tests/support/random_network.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using testing::IsError;
using ::testing::Not;

class ModelControlTest : public ::testing::Test {
 protected:
  ~ModelControlTest() override {
    while_it_loads_ = nullptr;
    repository_ = nullptr;
  }

  // Opens a repository of what `directory_` holds by now.
  void Open(std::vector<std::string> at_start = {}) {
    RepositoryOptions options{.directories = {directory_.path()}, .control = ModelControl::kExplicit};
    options.load_at_start = std::move(at_start);
    options.tune = tune_;
    if (tune_ == Tune::kOff) options.plan.tuning_budget = absl::ZeroDuration();
    options.memory = memory_;
    options.resident_bytes = [] {
      if (while_it_loads_) while_it_loads_();
      return int64_t{0};
    };
    repository_ = *NewModelRepository(options, devices_, *metrics_);
    repository_->Load([] {});
  }

  Status Load(const std::string& model, std::optional<inference::ModelConfig> config = {}) {
    std::promise<Status> done;
    repository_->LoadModel({.model = model, .config = std::move(config)},
                           [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  Status Unload(const std::string& model) {
    std::promise<Status> done;
    repository_->UnloadModel(model, false, [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  void WriteNetwork(const std::string& file, const Network& network = testing::MakeRandomNetwork({})) {
    const std::vector<std::byte> bytes = *EncodePacked(network);
    directory_.Write(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  std::shared_ptr<ServingModel> Serving(const std::string& model) { return *repository_->Find(model, ""); }
  ModelStatus StatusOf(const std::string& model) {
    for (ModelStatus& status : repository_->List()) {
      if (status.name == model) return status;
    }
    return {};
  }
  // Of a model that was unloaded, once the last of its requests has ended.
  void AwaitUnloaded(const std::string& model) {
    Await([&] { return StatusOf(model).state == ModelState::kUnloaded; });
  }

  static inline std::function<void()> while_it_loads_ = nullptr;  // on the thread that does
  const std::vector<float> values_ = {1, 2, 3, 4};
  RepositoryDirectory directory_;
  Tune tune_ = Tune::kOff;
  MemoryRoom memory_;
  const Devices devices_{NewCpuBackend()};
  std::unique_ptr<Metrics> metrics_ = *NewMetrics("127.0.0.1:0");
  std::unique_ptr<ModelRepository> repository_;
};

TEST_F(ModelControlTest, NothingIsLoadedAtTheStartButWhatIsNamed) {
  for (const char* model : {"a", "b"}) directory_.Write(Concat(model, "/config.pbtxt"), IdentityConfig());
  Open();
  EXPECT_THAT(repository_->Find("a", "").status(), IsError(StatusCode::kUnavailable, "model 'a' is not loaded"));
  EXPECT_EQ(repository_->List().size(), 2u);
  EXPECT_TRUE(repository_->readiness().ready);
  Open({"b"});
  EXPECT_FALSE(repository_->Find("a", "").ok());
  EXPECT_TRUE(repository_->Find("b", "").ok());
  Open({"*"});
  EXPECT_TRUE(repository_->Find("a", "").ok());
  Open({"none"});
  EXPECT_FALSE(repository_->readiness().ready);
  EXPECT_THAT(repository_->Find("none", "").status(), IsError(StatusCode::kInternal, "there is no model 'none'"));
}

TEST_F(ModelControlTest, ModelsAreLoadedAndUnloaded) {
  directory_.Write("a/config.pbtxt", IdentityConfig());
  Open();
  EXPECT_TRUE(Load("a").ok());
  EXPECT_TRUE(repository_->Find("a", "").ok());
  directory_.Write("new/config.pbtxt", IdentityConfig());
  EXPECT_TRUE(Load("new").ok()) << "it came after the start";
  EXPECT_TRUE(Unload("a").ok());
  EXPECT_FALSE(repository_->Find("a", "").ok());
  AwaitUnloaded("a");
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("model=\"a\",version")));
  EXPECT_TRUE(Unload("a").ok()) << "it is what was wanted";
  EXPECT_TRUE(Load("a").ok());
  EXPECT_TRUE(repository_->Find("a", "").ok());
  EXPECT_THAT(Load("nobody"), IsError(StatusCode::kNotFound, "there is no model 'nobody'"));
  EXPECT_THAT(Unload("nobody"), IsError(StatusCode::kNotFound, "there is no model 'nobody'"));
  EXPECT_THAT(Load("../a"), IsError(StatusCode::kNotFound, "there is no model '../a'"));
}

TEST_F(ModelControlTest, OrdersNeedExplicitControl) {
  directory_.Write("a/config.pbtxt", IdentityConfig());
  repository_ = *NewModelRepository({.directories = {directory_.path()}}, devices_, *metrics_);
  repository_->Load([] {});
  EXPECT_THAT(Load("a"), IsError(StatusCode::kUnavailable, "--model-control=explicit"));
  EXPECT_THAT(Unload("a"), IsError(StatusCode::kUnavailable, "--model-control=explicit"));
  EXPECT_TRUE(repository_->Find("a", "").ok());
}

TEST_F(ModelControlTest, WhatDidNotChangeGoesOn) {
  WriteNetwork("m/1/model.swz");
  Open({"m"});
  const auto before = Serving("m");
  EXPECT_TRUE(Load("m").ok());
  EXPECT_EQ(Serving("m"), before);
  directory_.Write("m/config.pbtxt", "max_batch_size: 4");
  EXPECT_TRUE(Load("m").ok());
  EXPECT_EQ(Serving("m")->model->spec().max_batch_size, 4);
}

TEST_F(ModelControlTest, AModelIsReplacedWhileItHasRequests) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Open({"m"});
  std::shared_ptr<ServingModel> before = Serving("m");
  before->batcher->HoldUntilQueued(2);
  std::promise<Status> ended;
  Request request;
  request.inputs = {TensorView{DType::kFloat32, {1, 4}, std::as_bytes(std::span(values_))}};
  ASSERT_TRUE(
      before->batcher->Submit(std::move(request), [&](StatusOr<Result> result) { ended.set_value(result.status()); })
          .ok());
  directory_.Write("m/config.pbtxt", IdentityConfig("TYPE_INT32"));
  EXPECT_TRUE(Load("m").ok());
  EXPECT_NE(Serving("m"), before);
  EXPECT_EQ(Serving("m")->model->spec().inputs[0].dtype, DType::kInt32);
  before->batcher->HoldUntilQueued(0);
  EXPECT_TRUE(ended.get_future().get().ok());
  const std::weak_ptr<ServingModel> gone = before;
  before = nullptr;
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(StatusOf("m").state, ModelState::kReady);
}

TEST_F(ModelControlTest, AFailedReloadLeavesWhatServes) {
  WriteNetwork("m/1/model.swz");
  Open({"m"});
  const auto before = Serving("m");
  directory_.Write("m/1/model.swz", "no model");
  EXPECT_THAT(Load("m"), IsError(StatusCode::kInternal, "what served before goes on"));
  EXPECT_EQ(Serving("m"), before);
  EXPECT_EQ(StatusOf("m").state, ModelState::kReady);
  EXPECT_FALSE(StatusOf("m").reload.ok());
  EXPECT_THAT(metrics_->Text(), HasSubstr("swizzle_model_load_failures_total{model=\"m\"} 1"));
  directory_.Write("m/config.pbtxt", "no_such_field: 1");
  EXPECT_THAT(Load("m"), IsError(StatusCode::kInternal, "no_such_field"));
  EXPECT_EQ(Serving("m"), before);
  EXPECT_THAT(std::string(StatusOf("m").reload.message()), HasSubstr("no_such_field"));
  std::filesystem::remove_all(directory_.path() / "m");
  EXPECT_THAT(Load("m"), IsError(StatusCode::kInternal, "there is no model 'm'"));
  EXPECT_EQ(Serving("m"), before);
}

TEST_F(ModelControlTest, AFileThatChangesWhileItIsReadIsToldOf) {
  WriteNetwork("m/1/model.swz");
  Open();
  while_it_loads_ = [&] { WriteNetwork("m/1/other.swz"); };
  EXPECT_THAT(Load("m"),
              IsError(StatusCode::kInternal, "'1/other.swz' changed while the model was read; load it again"));
  while_it_loads_ = [&] { directory_.Write("m/1/model.swz", "the half of"); };
  EXPECT_THAT(Load("m"), IsError(StatusCode::kInternal, "'1/model.swz' changed while the model was read"));
  while_it_loads_ = nullptr;
  WriteNetwork("m/1/model.swz");
  EXPECT_TRUE(Load("m").ok());
}

TEST_F(ModelControlTest, ANewVersionTakesOverOnceItServes) {
  WriteNetwork("m/1/model.swz");
  Open({"m"});
  directory_.Write("m/2/model.swz", "no model");
  EXPECT_FALSE(Load("m").ok());
  EXPECT_THAT(repository_->Versions("m"), ElementsAre(1)) << "the policy means the other, which does not serve";
  WriteNetwork("m/2/model.swz");
  EXPECT_TRUE(Load("m").ok());
  EXPECT_THAT(repository_->Versions("m"), ElementsAre(2));
  Await([&] { return StatusOf("m").state == ModelState::kUnloaded; });
  EXPECT_EQ(StatusOf("m").version, 1);
  EXPECT_EQ(repository_->Find("m", "1").status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(repository_->readiness().ready);
}

TEST_F(ModelControlTest, WhatAnUnloadedModelWasPromisedIsGivenBack) {
  WriteNetwork("m/1/model.swz");
  memory_.limit = int64_t{1} << 40;
  Open({"m"});
  const int64_t promised = repository_->promised_bytes();
  EXPECT_GT(promised, 0);
  EXPECT_TRUE(Unload("m").ok());
  Await([&] { return repository_->promised_bytes() == 0; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Load("m").ok());
    EXPECT_EQ(repository_->promised_bytes(), promised);
    EXPECT_TRUE(Unload("m").ok());
  }
  Await([&] { return repository_->promised_bytes() == 0; });
}

// A smaller batch would refuse requests that are good today.
TEST_F(ModelControlTest, AReloadLowersNoBatch) {
  WriteNetwork("m/1/model.swz");
  memory_.limit = int64_t{1} << 40;
  Open({"m"});
  memory_.limit = repository_->promised_bytes() * 3 / 2;
  Open({"m"});
  ASSERT_EQ(Serving("m")->model->spec().memory_note, "");
  directory_.Write("m/config.pbtxt", "dynamic_batching { max_queue_delay_microseconds: 1 }");
  EXPECT_THAT(Load("m"), IsError(StatusCode::kInternal, "beside what it is to replace there is too little memory"));
  EXPECT_TRUE(Unload("m").ok());
  EXPECT_TRUE(Load("m").ok());
  EXPECT_EQ(Serving("m")->model->spec().memory_note, "");
}

TEST_F(ModelControlTest, AModelThatIsTunedIsLetGo) {
  WriteNetwork("m/1/model.swz");
  tune_ = Tune::kBackground;
  Open();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Load("m").ok());
    EXPECT_TRUE(Unload("m").ok());
    AwaitUnloaded("m");
  }
}

// By thread.
std::map<int, int> Nicenesses() {
  std::map<int, int> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const int id = std::stoi(thread.path().filename());
    errno = 0;
    const int niceness = getpriority(PRIO_PROCESS, static_cast<id_t>(id));
    if (errno == 0) all[id] = niceness;  // else it has ended
  }
  return all;
}

TEST_F(ModelControlTest, ALoadBesideServingGivesWayAndWhatItLoadsDoesNot) {
  const int usual = getpriority(PRIO_PROCESS, 0);
  std::vector<int> loading;
  while_it_loads_ = [&] { loading.push_back(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()))); };
  memory_.limit = int64_t{1} << 40;  // or nobody asks
  WriteNetwork("first/1/model.swz");
  WriteNetwork("m/1/model.swz");
  Open();
  ASSERT_TRUE(Load("first").ok());
  ASSERT_FALSE(loading.empty());
  EXPECT_THAT(loading, Each(usual)) << "nothing serves that it could keep from going on";
  loading.clear();
  const std::map<int, int> before = Nicenesses();
  ASSERT_TRUE(Load("m").ok());
  EXPECT_THAT(loading, Contains(Gt(usual)));
  while_it_loads_ = nullptr;
  for (const auto& [thread, niceness] : Nicenesses()) {
    EXPECT_TRUE(before.contains(thread) || niceness == usual) << thread << " has " << niceness;
  }
}

TEST_F(ModelControlTest, OrdersEndWithTheServer) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Open({"m"});
  repository_->StopLoading();
  EXPECT_THAT(Load("m"), IsError(StatusCode::kUnavailable, "the server is shutting down"));
  EXPECT_THAT(Unload("m"), IsError(StatusCode::kUnavailable, "the server is shutting down"));
  EXPECT_TRUE(repository_->Find("m", "").ok());
}

TEST_F(ModelControlTest, AConfigurationMayBeGiven) {
  WriteNetwork("m/1/model.swz");
  Open({"m"});
  inference::ModelConfig config;
  config.set_max_batch_size(3);
  EXPECT_TRUE(Load("m", config).ok());
  EXPECT_EQ(Serving("m")->model->spec().max_batch_size, 3);
  EXPECT_TRUE(Load("m").ok()) << "as config.pbtxt says, again";
  EXPECT_NE(Serving("m")->model->spec().max_batch_size, 3);
}

}  // namespace
}  // namespace swizzle
