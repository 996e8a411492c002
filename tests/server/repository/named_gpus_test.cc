// Models whose configuration names GPUs, on a server that has some.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/packed/packed_writer.h"
#include "proto/model_config.pb.h"
#include "server/repository/model_repository.h"
#include "tests/kernels/fake_device.h"
#include "tests/server/repository_directory.h"
#include "tests/support/fake_device.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NamedGpusTest : public ::testing::Test {
 protected:
  // The model 'm' with these groups, on a server with so many GPUs.
  StatusOr<std::shared_ptr<ServingModel>> Load(const std::string& config, int count = 3) {
    const std::vector<std::byte> bytes = *EncodePacked(testing::MakeRandomNetwork({}));
    directory_.Write("m/1/model.swz", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    directory_.Write("m/config.pbtxt", config);
    std::vector<std::unique_ptr<Backend>> gpus;
    for (int i = 0; i < count; ++i) {
      gpus.push_back(std::make_unique<testing::FakeDevice>(int64_t{1} << 40, 0, Concat("cuda:", i)));
    }
    return Serve(std::move(gpus), nullptr);
  }

  // The model 'm' of the directory, on a server with these GPUs, which have these functions.
  StatusOr<std::shared_ptr<ServingModel>> Serve(std::vector<std::unique_ptr<Backend>> gpus,
                                                const DeviceFunctions* functions) {
    repository_ = nullptr;
    devices_ = std::make_unique<Devices>(NewCpuBackend(), std::move(gpus), functions);
    RepositoryOptions options{.directories = {directory_.path()}, .tune = Tune::kOff};
    options.plan.tuning_budget = absl::ZeroDuration();
    repository_ = *NewModelRepository(options, *devices_, *metrics_);
    repository_->Load([] {});
    return repository_->Find("m", "");
  }

  std::vector<std::string> DevicesOf(const std::string& config) {
    const auto serving = Load(config);
    EXPECT_TRUE(serving.ok()) << serving.status();
    return serving.ok() ? (*serving)->model->facts()->devices : std::vector<std::string>();
  }

  const FakeDeviceFunctions functions_{};  // which outlive the devices
  RepositoryDirectory directory_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Metrics> metrics_ = *NewMetrics("127.0.0.1:0");
  std::unique_ptr<ModelRepository> repository_;
};

TEST_F(NamedGpusTest, AModelRunsOnThoseAlone) {
  EXPECT_THAT(DevicesOf("instance_group { kind: KIND_GPU }"), ElementsAre("cuda:0", "cuda:1", "cuda:2"));
  EXPECT_THAT(DevicesOf("instance_group { kind: KIND_GPU gpus: 1 }"), ElementsAre("cuda:1"));
  EXPECT_THAT(DevicesOf("instance_group { gpus: [2, 0] }"), ElementsAre("cuda:0", "cuda:2"));
}

TEST_F(NamedGpusTest, EachHasTheExecutorsOfItsGroups) {
  const auto serving = Load("instance_group { count: 2 gpus: 0 } instance_group { count: 2 gpus: 2 }");
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_EQ((*serving)->model->spec().instance_count, 2);
  EXPECT_EQ((*serving)->model->spec().executors(), 4);
  inference::ModelConfig config;
  ASSERT_TRUE(config.ParseFromString((*serving)->config_bytes));
  EXPECT_THAT(config.instance_group(0).gpus(), ElementsAre(0, 2));
}

TEST_F(NamedGpusTest, OneThatIsNotThereFailsTheLoad) {
  EXPECT_THAT(
      std::string(Load("instance_group { kind: KIND_GPU gpus: [1, 3] }").status().message()),
      HasSubstr("'instance_group.gpus': there is no GPU 3 here, or --device does not name it; of GPUs there are "
                "0, 1, 2"));
}

TEST_F(NamedGpusTest, WithoutGpusTheCpuRunsItWhateverIsNamed) {
  const auto serving = Load("instance_group { kind: KIND_GPU count: 2 gpus: [1, 3] }", 0);
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_THAT((*serving)->model->facts()->devices, ElementsAre("cpu"));
  EXPECT_EQ((*serving)->model->spec().executors(), 2);
  inference::ModelConfig config;
  ASSERT_TRUE(config.ParseFromString((*serving)->config_bytes));
  EXPECT_EQ(config.instance_group(0).gpus_size(), 0);
}

TEST_F(NamedGpusTest, OneInRegionsRunsOnAllOfThem) {
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Counting("w", {4, 6}).Node("MatMul", {"x", "w"}, {"m"});
  builder.Node("Transpose", {"m"}, {"t"}).Node("MatMul", {"t", "m"}, {"y"}).Output("y");  // rows of all requests
  const std::vector<std::byte> bytes = builder.Bytes();
  directory_.Write("m/1/model.onnx", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto serve = [&](const std::string& config) {
    directory_.Write("m/config.pbtxt", config);
    std::vector<std::unique_ptr<Backend>> gpus;
    for (int i = 0; i < 3; ++i) gpus.push_back(std::make_unique<FakeDevice>(Concat("cuda:", i)));
    return Serve(std::move(gpus), &functions_);
  };
  auto serving = serve("");
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_EQ((*serving)->model->facts()->properties.count("swizzle_regions"), 1u);
  EXPECT_THAT((*serving)->model->facts()->devices, ElementsAre("cuda:0", "cuda:1", "cuda:2"));
  EXPECT_EQ((*serving)->model->spec().executors(), 3 * (*serving)->model->spec().instance_count);
  serving = serve("instance_group { count: 2 gpus: [2, 0] }");
  ASSERT_TRUE(serving.ok()) << serving.status();
  EXPECT_THAT((*serving)->model->facts()->devices, ElementsAre("cuda:0", "cuda:2"));
  EXPECT_EQ((*serving)->model->spec().executors(), 4);
}

}  // namespace
}  // namespace swizzle
