#include "server/repository/retirement.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

namespace swizzle {
namespace {

// An executor lets go of the last call of its model: it must not be what destroys it.
TEST(RetirementTest, AnotherThreadDestroysWhatIsLetGoOf) {
  const std::shared_ptr<Retirement> retirement = Retirement::New();
  std::promise<std::thread::id> ended_on;
  std::promise<const ServingModel*> ended;
  retirement->Start([&](const EndedModel& model) {
    ended_on.set_value(std::this_thread::get_id());
    ended.set_value(model.was);
  });
  std::shared_ptr<ServingModel> model = retirement->NewModel();
  const ServingModel* const was = model.get();
  retirement->Retire(model);
  EXPECT_EQ(retirement->Retired().size(), 1u);
  model = nullptr;
  EXPECT_NE(ended_on.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(ended.get_future().get(), was);
  retirement->AwaitEnds(absl::InfiniteDuration());
  EXPECT_TRUE(retirement->Retired().empty());
}

TEST(RetirementTest, WaitsNoLongerThanItIsTold) {
  const std::shared_ptr<Retirement> retirement = Retirement::New();
  retirement->Start([](const EndedModel&) {});
  const std::shared_ptr<ServingModel> model = retirement->NewModel();
  retirement->Retire(model);
  retirement->AwaitEnds(absl::ZeroDuration());
  EXPECT_EQ(retirement->Retired().size(), 1u) << "it has a request yet";
}

TEST(RetirementTest, ModelsMayOutliveIt) {
  std::shared_ptr<Retirement> retirement = Retirement::New();
  int told = 0;
  retirement->Start([&](const EndedModel&) { ++told; });
  std::shared_ptr<ServingModel> model = retirement->NewModel();
  retirement->Stop();
  retirement = nullptr;
  model = nullptr;
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace swizzle
