#include "server/engine/run_slots.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "server/model/identity_model.h"
#include "tests/support/status_matchers.h"

namespace swizzle::engine {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;

class RunSlotsTest : public ::testing::Test {
 protected:
  RunSlotsTest() {
    ModelSpec spec;
    spec.name = "identity";
    spec.inputs = spec.outputs = {{"x", DType::kFloat32, {1}}};
    model_ = *NewIdentityModel(std::move(spec), absl::ZeroDuration());
  }
  std::unique_ptr<RunSlots> Slots(int count, bool survives_forks = true) {
    return *RunSlots::New(*model_, count, survives_forks);
  }
  // What `check` returns in a child.
  template <typename Check>
  static bool InChild(const Check& check) {
    const pid_t child = fork();
    if (child == 0) _exit(check() ? 0 : 1);
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  std::shared_ptr<swizzle::Model> model_;
};

TEST_F(RunSlotsTest, GivesEachSessionToOne) {
  const auto slots = Slots(2);
  Session* const first = *slots->Take();
  Session* const second = *slots->Take();
  EXPECT_NE(first, second);
  slots->GiveBack(first);
  EXPECT_EQ(*slots->Take(), first) << "its memory is in the cache";
  slots->GiveBack(first);
  slots->GiveBack(second);
}

TEST_F(RunSlotsTest, WhoWaitsGetsASession) {
  const auto slots = Slots(1);
  Session* const session = *slots->Take();
  std::thread other([&] {
    const auto taken = slots->Take();
    ASSERT_THAT(taken, IsOk());
    slots->GiveBack(*taken);
  });
  slots->GiveBack(session);
  other.join();
}

TEST_F(RunSlotsTest, WhoWaitsIsOvertakenAFewTimesAtMost) {
  const auto slots = Slots(1);
  std::atomic<bool> had = false;
  Session* session = *slots->Take();
  std::thread other([&] {
    Session* const its = *slots->Take();
    had = true;
    slots->GiveBack(its);
  });
  while (!had) {  // for ever, if it were not so
    slots->GiveBack(session);
    session = *slots->Take();
  }
  slots->GiveBack(session);
  other.join();
}

TEST_F(RunSlotsTest, EndingWaitsForWhoRunsAndCancelsWhoWaits) {
  const auto slots = Slots(1);
  Session* const session = *slots->Take();
  std::atomic<bool> ended = false;
  std::thread ending([&] {
    slots->End();
    ended = true;
  });
  std::thread waiting([&] { EXPECT_THAT(slots->Take(), IsError(StatusCode::kCancelled, "closed")); });
  waiting.join();
  EXPECT_FALSE(ended);
  slots->GiveBack(session);
  ending.join();
  EXPECT_THAT(slots->Take(), IsError(StatusCode::kCancelled, "closed"));
}

#ifndef SWIZZLE_THREAD_SANITIZER  // which has no use for threads in children of processes with threads

TEST_F(RunSlotsTest, ChildrenHaveSessionsOfTheirOwn) {
  const auto slots = Slots(2);
  EXPECT_FALSE(slots->inherited());
  const auto usable = [&] {
    const auto first = slots->Take(), second = slots->Take();
    if (!slots->inherited() || !first.ok() || !second.ok() || *first == *second) return false;
    slots->GiveBack(*first);
    slots->GiveBack(*second);
    slots->End();
    return true;
  };
  EXPECT_TRUE(InChild(usable));
  EXPECT_TRUE(InChild([&] { return InChild(usable); })) << "a child's child";
  EXPECT_FALSE(slots->inherited());
  slots->GiveBack(*slots->Take());
}

TEST_F(RunSlotsTest, ChildrenRefuseWhatWasInUse) {
  const auto slots = Slots(2);
  const auto refuses = [&] {
    return absl::IsFailedPrecondition(slots->Take().status()) && absl::IsFailedPrecondition(slots->Usable());
  };
  Session* const session = *slots->Take();
  EXPECT_TRUE(InChild(refuses));
  slots->GiveBack(session);
  EXPECT_FALSE(InChild(refuses));
  slots->NoteChanging(true);
  EXPECT_TRUE(InChild(refuses));
  slots->NoteChanging(false);
  EXPECT_FALSE(InChild(refuses));
  const auto on_gpu = Slots(1, false);
  EXPECT_TRUE(InChild([&] { return absl::IsFailedPrecondition(on_gpu->Take().status()); }));
}

#endif

}  // namespace
}  // namespace swizzle::engine
