#include "server/model/ensemble_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

TensorSpec Floats(std::string name, Shape dims) { return {std::move(name), DType::kFloat32, std::move(dims)}; }

ModelSpec SpecOf(std::string name, int64_t max_batch_size, std::vector<TensorSpec> inputs,
                 std::vector<TensorSpec> outputs) {
  ModelSpec spec;
  spec.name = std::move(name);
  spec.max_batch_size = max_batch_size;
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  return spec;
}

class EnsembleGraphTest : public ::testing::Test {
 protected:
  StatusOr<EnsembleGraph> Connect() {
    std::vector<const ModelSpec*> models;
    for (const ModelSpec& model : models_) models.push_back(&model);
    return ConnectSteps(ensemble_, steps_, models);
  }
  void AddStep(ModelSpec model, std::map<std::string, std::string> inputs, std::map<std::string, std::string> outputs) {
    steps_.push_back({model.name, 0, std::move(inputs), std::move(outputs)});
    models_.push_back(std::move(model));
  }
  void ExpectRefused(const std::string& said) {
    EXPECT_THAT(Connect().status(), IsError(StatusCode::kInvalidArgument, said));
  }

  ModelSpec ensemble_ = SpecOf("ensemble", 4, {Floats("in", {8})}, {Floats("out", {-1})});
  std::vector<EnsembleStep> steps_;
  std::vector<ModelSpec> models_;
};

TEST_F(EnsembleGraphTest, StepsMayComeInAnyOrder) {
  AddStep(SpecOf("join", 4, {Floats("a", {-1}), Floats("b", {8})}, {Floats("c", {16})}), {{"a", "x"}, {"b", "y"}},
          {{"c", "out"}});
  AddStep(SpecOf("left", 8, {Floats("a", {8})}, {Floats("b", {8}), Floats("unread", {1})}), {{"a", "in"}},
          {{"b", "x"}});
  AddStep(SpecOf("right", 4, {Floats("a", {8}), Floats("again", {8})}, {Floats("b", {-1})}),
          {{"a", "in"}, {"again", "in"}}, {{"b", "y"}});
  const StatusOr<EnsembleGraph> graph = Connect();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->tensors.size(), 4u);
  EXPECT_EQ(graph->tensors[0].name, "in");
  EXPECT_THAT(graph->tensors[0].readers, UnorderedElementsAre(1, 2)) << "each once, however often it reads";
  EXPECT_THAT(graph->tensors[1].output, Optional(0)) << "what the first step makes";
  EXPECT_THAT(graph->steps[0].inputs, ElementsAre(Optional(2), Optional(3)));
  EXPECT_THAT(graph->steps[1].outputs, ElementsAre(Optional(2), std::nullopt));
  EXPECT_THAT(graph->steps[2].reads, ElementsAre(0));
  const auto [step, output] = MakerOf(*graph, 0);
  EXPECT_EQ(step, 0u);
  EXPECT_EQ(output, 0u);
}

TEST_F(EnsembleGraphTest, OptionalInputsNeedNoTensor) {
  ModelSpec model = SpecOf("model", 4, {Floats("a", {8}), Floats("b", {8})}, {Floats("c", {8})});
  model.inputs[1].default_value = std::make_shared<const InputDefault>();
  AddStep(std::move(model), {{"a", "in"}}, {{"c", "out"}});
  const StatusOr<EnsembleGraph> graph = Connect();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->steps[0].inputs, ElementsAre(Optional(0), std::nullopt));
}

TEST_F(EnsembleGraphTest, BatchDimensionsAreDimensionsWhereTheEnsembleHasNone) {
  ensemble_ = SpecOf("ensemble", 0, {Floats("in", {2, 8})}, {Floats("out", {-1, 8})});
  AddStep(SpecOf("batched", 4, {Floats("a", {8})}, {Floats("b", {8})}), {{"a", "in"}}, {{"b", "x"}});
  AddStep(SpecOf("whole", 0, {Floats("a", {-1, 8})}, {Floats("b", {-1, 8})}), {{"a", "x"}}, {{"b", "out"}});
  EXPECT_TRUE(Connect().ok()) << Connect().status();
}

TEST_F(EnsembleGraphTest, WhatDoesNotMeetIsNamed) {
  const ModelSpec model = SpecOf("model", 4, {Floats("a", {8})}, {Floats("b", {8})});
  AddStep(model, {{"a", "in"}}, {{"b", "x"}});
  ExpectRefused("output 'out' of the ensemble is made by no step");
  AddStep(SpecOf("next", 4, {Floats("a", {4, 2})}, {Floats("b", {8})}), {{"a", "x"}}, {{"b", "out"}});
  ExpectRefused(
      "tensor 'x' is output 'b' of step 1, model 'model', FP32 [-1,8], but input 'a' of step 2, model 'next', is FP32 "
      "[-1,4,2]");
  models_[1].inputs[0] = {"a", DType::kInt64, {8}};
  ExpectRefused("is INT64 [-1,8]");
  models_[1].inputs = {Floats("a", {8}), Floats("more", {8})};
  ExpectRefused("step 2, model 'next', needs its input 'more' in 'input_map'");
  models_[1].inputs.pop_back();
  EXPECT_TRUE(Connect().ok()) << Connect().status();
  steps_[0].inputs = {{"a", "out"}};
  ExpectRefused("input 'in' of the ensemble is read by no step");
  models_[0].inputs.push_back(Floats("c", {8}));
  steps_[0].inputs = {{"a", "out"}, {"c", "in"}};
  ExpectRefused("step 1, model 'model', waits for what comes of itself");
}

TEST_F(EnsembleGraphTest, AStepTakesTheBatchesOfTheEnsemble) {
  AddStep(SpecOf("small", 2, {Floats("a", {8})}, {Floats("b", {8})}), {{"a", "in"}}, {{"b", "out"}});
  ExpectRefused("'max_batch_size' is 4, but step 1, model 'small', takes batches of 2 at most; set it to that");
  models_[0].max_batch_size = 0;
  ExpectRefused("takes no batches; set it to 0");
}

}  // namespace
}  // namespace swizzle
