#include "server/repository/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ModelStatus kReady = {"good", 1, absl::OkStatus(), ModelState::kReady};
const ModelStatus kFailed = {"bad", 1, absl::InvalidArgumentError("its file is cut off"), ModelState::kFailed};
const ModelStatus kLoading = {"late", 0, absl::UnavailableError("model 'late' is being loaded"), ModelState::kLoading};

Readiness Judge(std::string_view rule, std::vector<ModelStatus> models) {
  return JudgeReadiness(*ParseReadyRule(rule), models);
}

TEST(ReadinessTest, AllMeansEveryModel) {
  EXPECT_TRUE(Judge("all", {}).ready);
  EXPECT_TRUE(Judge("all", {kReady}).ready);
  EXPECT_THAT(Judge("all", {kReady}).reasons, IsEmpty());
  const Readiness readiness = Judge("all", {kFailed, kReady, kLoading});
  EXPECT_FALSE(readiness.ready);
  EXPECT_THAT(readiness.reasons, ElementsAre("model 'bad' failed: its file is cut off", "model 'late' is loading"));
}

TEST(ReadinessTest, AnyMeansOneModelAndStillNamesTheOthers) {
  const Readiness readiness = Judge("any", {kFailed, kReady});
  EXPECT_TRUE(readiness.ready);
  EXPECT_THAT(readiness.reasons, ElementsAre("model 'bad' failed: its file is cut off"));
  EXPECT_FALSE(Judge("any", {kFailed, kLoading}).ready);
  EXPECT_FALSE(Judge("any", {}).ready);
  EXPECT_THAT(Judge("any", {}).reasons, ElementsAre("there are no models"));
}

TEST(ReadinessTest, NamesMeanTheseModels) {
  EXPECT_TRUE(Judge("good", {kFailed, kReady}).ready);
  EXPECT_FALSE(Judge("good,late", {kReady, kLoading}).ready);
  const Readiness readiness = Judge("good,other", {kReady});
  EXPECT_FALSE(readiness.ready);
  EXPECT_THAT(readiness.reasons, ElementsAre("there is no model 'other'"));
}

// What operators do at run time takes no server out of its load balancer.
TEST(ReadinessTest, WhatWasAskedForLaterKeepsNobodyWaiting) {
  ModelStatus late = kLoading, broken = kFailed;
  late.awaited = broken.awaited = false;
  const Readiness readiness = Judge("all", {kReady, late, broken});
  EXPECT_TRUE(readiness.ready);
  EXPECT_THAT(readiness.reasons, ElementsAre("model 'late' is loading", "model 'bad' failed: its file is cut off"));
  EXPECT_FALSE(Judge("late", {kReady, late}).ready);
}

TEST(ReadinessTest, NobodyWaitsForWhatIsNotLoaded) {
  const ModelStatus unloaded = {"gone", 1, absl::UnavailableError("model 'gone' is not loaded"), ModelState::kUnloaded};
  ModelStatus unloading = unloaded;
  unloading.state = ModelState::kUnloading;
  EXPECT_TRUE(Judge("all", {kReady, unloaded, unloading}).ready);
  EXPECT_THAT(Judge("all", {kReady, unloaded}).reasons, IsEmpty());
  EXPECT_FALSE(Judge("any", {unloaded}).ready);
  EXPECT_THAT(Judge("gone", {kReady, unloaded}).reasons, ElementsAre("model 'gone' is not loaded"));
}

TEST(ReadinessTest, AModelServesIfAVersionDoes) {
  ModelStatus second = kReady;
  second.version = 2;
  second.state = ModelState::kFailed;
  second.status = absl::InvalidArgumentError("its file is cut off");
  EXPECT_TRUE(Judge("good", {kReady, second}).ready);
  const Readiness readiness = Judge("all", {kReady, second});
  EXPECT_FALSE(readiness.ready);
  EXPECT_THAT(readiness.reasons, ElementsAre("version 2 of model 'good' failed: its file is cut off"));
}

TEST(ReadinessTest, RulesAreParsed) {
  EXPECT_THAT(ParseReadyRule("a,b")->names, ElementsAre("a", "b"));
  for (const char* text : {"", ",", "a,", ",a", "a,,b"}) {
    EXPECT_EQ(ParseReadyRule(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(ReadinessTest, NamesThatNoModelHasAreRefused) {
  for (const char* name : {"a b", " a", "a/b", "a\n", "all models"}) {
    const Status status = ParseReadyRule(Concat("good,", name)).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("no model is called '")) << name;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("model names consist of")) << name;
  }
}

}  // namespace
}  // namespace swizzle
