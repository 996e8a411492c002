// What a request chooses beside its tensors: its priority, its timeout, and classes in the place of outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "server/rpc/wire_convert.h"

namespace swizzle {
namespace {

using inference::ModelInferRequest;
using ::testing::ElementsAre;

const Instant kNow = Instant() + absl::Seconds(1'000'000);

ModelSpec Spec() {
  ModelSpec spec;
  spec.name = "M";
  spec.max_batch_size = 8;
  spec.inputs = {{"X", DType::kFloat32, {4}}};
  spec.outputs = {{"Y", DType::kFloat32, {4}}, {"Z", DType::kString, {-1}}};
  return spec;
}

ModelInferRequest RequestOfOneRow() {
  ModelInferRequest message;
  auto& input = *message.add_inputs();
  input.set_name("X");
  input.set_datatype("FP32");
  input.add_shape(1);
  input.add_shape(4);
  message.add_raw_input_contents(std::string(16, 'a'));
  return message;
}

std::string ErrorOf(const ModelInferRequest& message, const ModelSpec& spec = Spec()) {
  return std::string(DecodeInfer(message, spec, kNow).status().message());
}

TEST(DecodeInfer, PriorityIsALevelOfTheModels) {
  ModelSpec spec = Spec();
  spec.priority_levels = 3;
  spec.default_priority = 2;
  const auto level_of = [&](const ModelInferRequest& message) {
    return DecodeInfer(message, spec, kNow)->request.level;
  };
  ModelInferRequest message = RequestOfOneRow();
  EXPECT_EQ(level_of(message), 2);
  auto& priority = (*message.mutable_parameters())["priority"];
  priority.set_uint64_param(3);
  EXPECT_EQ(level_of(message), 3);
  priority.set_int64_param(1);
  EXPECT_EQ(level_of(message), 1);
  priority.set_int64_param(0);
  EXPECT_EQ(level_of(message), 2);
  priority.set_uint64_param(4);
  EXPECT_EQ(ErrorOf(message, spec),
            "parameter 'priority' is 4, but model 'M' has 3 priority levels; use 0 to 3, of which 1 is served first");
  priority.set_uint64_param(std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(DecodeInfer(message, spec, kNow).ok());
}

TEST(DecodeInfer, TimeoutIsWhatTheLevelsPolicySays) {
  ModelSpec spec = Spec();
  spec.priority_levels = 2;
  spec.level_policies[2].delays_late = true;
  ModelInferRequest message = RequestOfOneRow();
  (*message.mutable_parameters())["timeout"].set_int64_param(1500);
  (*message.mutable_parameters())["priority"].set_int64_param(2);
  const auto decoded = DecodeInfer(message, spec, kNow);
  EXPECT_EQ(decoded->request.late_at, kNow + absl::Microseconds(1500));
  EXPECT_EQ(decoded->request.deadline, Instant::InfiniteFuture());
}

TEST(DecodeInfer, PriorityHasOneLevel) {
  ModelInferRequest message = RequestOfOneRow();
  auto& priority = (*message.mutable_parameters())["priority"];
  for (const uint64_t level : {0, 1}) {
    priority.set_uint64_param(level);
    EXPECT_TRUE(DecodeInfer(message, Spec(), kNow).ok());
  }
  priority.set_uint64_param(2);
  EXPECT_EQ(ErrorOf(message), "parameter 'priority' is 2, but model 'M' has one priority level; use 0 or 1");
  priority.set_bool_param(true);
  EXPECT_EQ(ErrorOf(message), "parameter 'priority' must be a non-negative integer");
}

TEST(DecodeInfer, ClassesAreAskedForInThePlaceOfAnOutput) {
  ModelInferRequest message = RequestOfOneRow();
  message.add_outputs()->set_name("Y");
  auto& classes = (*message.mutable_outputs(0)->mutable_parameters())["classification"];
  classes.set_int64_param(3);
  EXPECT_THAT(DecodeInfer(message, Spec(), kNow)->outputs, ElementsAre(RequestedOutput{0, 3}));
  classes.set_uint64_param(std::numeric_limits<uint64_t>::max());  // all there are
  EXPECT_TRUE(DecodeInfer(message, Spec(), kNow).ok());
  classes.set_int64_param(0);
  EXPECT_THAT(DecodeInfer(message, Spec(), kNow)->outputs, ElementsAre(RequestedOutput{0}));
  classes.set_int64_param(-1);
  EXPECT_EQ(ErrorOf(message), "parameter 'classification' must be a non-negative integer");
  classes.set_string_param("3");
  EXPECT_EQ(ErrorOf(message), "parameter 'classification' must be a non-negative integer");
  classes.set_int64_param(3);
  message.mutable_outputs(0)->set_name("Z");
  EXPECT_EQ(ErrorOf(message), "parameter 'classification' is for outputs of numbers; output 'Z' of model 'M' is BYTES");
}

}  // namespace
}  // namespace swizzle
