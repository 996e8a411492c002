#include "server/repository/model_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsError;

class ModelTableTest : public ::testing::Test {
 protected:
  // A version that serves, which is told apart by its address.
  ModelTable::Serving Serve(int64_t version) {
    auto serving = std::make_shared<ServingModel>();
    EXPECT_TRUE(table_.Serve("m", version, serving).ok());
    return serving;
  }
  std::vector<ModelState> States() {
    std::vector<ModelState> states;
    for (const ModelStatus& status : table_.List()) states.push_back(status.state);
    return states;
  }

  const Status broken_ = absl::InvalidArgumentError("the file ends early");
  ModelTable table_;
};

TEST_F(ModelTableTest, FindsTheLatestThatServes) {
  table_.BeginLoad("m", true);
  EXPECT_THAT(table_.Find("m", "").status(), IsError(StatusCode::kUnavailable, "model 'm' is being loaded"));
  table_.ExpectVersions("m", {1, 2, 3}, true);
  EXPECT_EQ(table_.List().size(), 3u) << "the model as a whole is no version any more";
  const auto first = Serve(1), second = Serve(2);
  EXPECT_EQ(*table_.Find("m", ""), second);
  EXPECT_EQ(*table_.Find("m", "1"), first);
  EXPECT_THAT(table_.Find("m", "3").status(), IsError(StatusCode::kUnavailable, "being loaded"));
  table_.Fail("m", 3, broken_);
  EXPECT_EQ(*table_.Find("m", ""), second);
  EXPECT_THAT(table_.Find("m", "3").status(), IsError(StatusCode::kInternal, "failed to load: the file ends early"));
  EXPECT_EQ(table_.Find("m", "4").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(table_.LatestVersion("m"), 3);
}

TEST_F(ModelTableTest, AVersionIsReplacedInOneStep) {
  const auto before = Serve(1);
  auto after = std::make_shared<ServingModel>();
  EXPECT_EQ(*table_.Serve("m", 1, after), before);
  EXPECT_EQ(*table_.Find("m", ""), after);
  table_.Ended("m", 1, before.get());
  EXPECT_THAT(States(), ElementsAre(ModelState::kReady)) << "it was another that ended";
}

TEST_F(ModelTableTest, AFailureIsShownBesideWhatServes) {
  const auto serving = Serve(1);
  table_.ExpectVersions("m", {1}, false);
  table_.Fail("m", 1, broken_);
  EXPECT_EQ(*table_.Find("m", ""), serving);
  EXPECT_EQ(table_.List()[0].reload, broken_);
  Serve(1);
  EXPECT_TRUE(table_.List()[0].reload.ok());
  table_.Fail("m", 0, broken_);
  ASSERT_EQ(table_.List().size(), 1u);
  EXPECT_EQ(table_.List()[0].reload, broken_);
}

TEST_F(ModelTableTest, WhatIsUnloadedEnds) {
  const auto first = Serve(1), second = Serve(2);
  EXPECT_THAT(table_.Unload("m", {2}), ElementsAre(first));
  EXPECT_THAT(States(), ElementsAre(ModelState::kUnloading, ModelState::kReady));
  EXPECT_THAT(table_.Unload("m", {2}), IsEmpty()) << "once";
  table_.Ended("m", 1, first.get());
  EXPECT_THAT(States(), ElementsAre(ModelState::kUnloaded, ModelState::kReady));
  table_.ExpectVersions("m", {2, 3}, false);
  EXPECT_THAT(States(), ElementsAre(ModelState::kReady, ModelState::kLoading)) << "old ones do not pile up";
}

// Loaded again before its last request has ended.
TEST_F(ModelTableTest, TheEndOfAnOldVersionUnloadsNoNewOne) {
  const auto first = Serve(1);
  table_.Unload("m", {});
  table_.ExpectVersions("m", {1}, false);
  table_.Ended("m", 1, first.get());
  EXPECT_THAT(States(), ElementsAre(ModelState::kLoading));
}

TEST_F(ModelTableTest, WhatIsForgottenGoesOnceItHasEnded) {
  const auto serving = Serve(1);
  table_.Unload("m", {});
  table_.Forget("m");
  EXPECT_TRUE(table_.Has("m"));
  table_.Ended("m", 1, serving.get());
  EXPECT_FALSE(table_.Has("m"));
  table_.Add("n");
  table_.Forget("n");
  EXPECT_FALSE(table_.Has("n"));
}

TEST_F(ModelTableTest, NothingServesAfterItIsClosed) {
  const auto serving = Serve(1);
  table_.Close();
  EXPECT_EQ(table_.Serve("m", 2, std::make_shared<ServingModel>()).status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(table_.AllServing(), ElementsAre(serving));
}

}  // namespace
}  // namespace swizzle
