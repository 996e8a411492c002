#include "server/batching/executor_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "server/batching/batcher.h"
#include "tests/server/batching/batcher_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/process_limits.h"

namespace swizzle {
namespace {

// Runs until it is released.
class HeldWork final : public ExecutorThreads::Work {
 public:
  void Run() override {
    MutexLock lock(mutex_);
    thread_ = std::this_thread::get_id();
    ++runs_;
    changed_.SignalAll();
    while (!released_) changed_.Wait(mutex_);
    over_ = true;
    changed_.SignalAll();
  }
  void Release() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.SignalAll();
  }
  void AwaitRuns(int runs) {
    MutexLock lock(mutex_);
    while (runs_ < runs) changed_.Wait(mutex_);
  }
  void AwaitEnd() {
    MutexLock lock(mutex_);
    while (!over_) changed_.Wait(mutex_);
  }
  bool begun() {
    MutexLock lock(mutex_);
    return runs_ > 0;
  }
  std::thread::id thread() {
    MutexLock lock(mutex_);
    return thread_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int runs_ ABSL_GUARDED_BY(mutex_) = 0;
  bool released_ ABSL_GUARDED_BY(mutex_) = false, over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread::id thread_ ABSL_GUARDED_BY(mutex_);
};

class CountingAlarm final : public ExecutorThreads::Alarm {
 public:
  void Ring() override { ++rings; }
  std::atomic<int> rings = 0;
};

class ExecutorThreadsTest : public ::testing::Test {
 protected:
  ~ExecutorThreadsTest() override {
    for (HeldWork& work : works_) work.Release();
    for (HeldWork& work : works_) work.AwaitEnd();
    threads_ = nullptr;
  }

  FakeClock clock_;
  std::unique_ptr<ExecutorThreads> threads_ = std::make_unique<ExecutorThreads>(clock_);
  std::deque<HeldWork> works_;
};

TEST_F(ExecutorThreadsTest, EachWorkHasAThreadOfItsOwn) {
  threads_->Expect(5);
  clock_.AwaitWaiters(2);
  std::set<std::thread::id> ids;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(threads_->Add(works_.emplace_back()));
    works_.back().AwaitRuns(1);
    ids.insert(works_.back().thread());
  }
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_FALSE(threads_->crowded());
}

TEST_F(ExecutorThreadsTest, OfOneThatIsIdleAnotherHasTheThread) {
  threads_->Expect(100);
  std::set<std::thread::id> ids;
  for (int i = 0; i < 100; ++i) {
    clock_.AwaitWaiters(2);  // a thread without work, and the one that rings
    works_.emplace_back().Release();
    EXPECT_TRUE(threads_->Add(works_.back()));
    works_.back().AwaitEnd();
    ids.insert(works_.back().thread());
  }
  EXPECT_EQ(ids.size(), 1u);
}

TEST_F(ExecutorThreadsTest, ThereAreNoMoreThanAreExpected) {
  threads_->Expect(1);
  clock_.AwaitWaiters(2);
  EXPECT_TRUE(threads_->Add(works_.emplace_back()));
  works_[0].AwaitRuns(1);
  EXPECT_FALSE(threads_->Add(works_.emplace_back()));
  EXPECT_FALSE(threads_->crowded()) << "no more were wanted";
  works_[0].Release();
  works_[1].AwaitRuns(1);
  EXPECT_EQ(works_[1].thread(), works_[0].thread());
}

TEST_F(ExecutorThreadsTest, WhereNoneCanBeStartedWorksTakeTurns) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer ends a process that can't start a thread";
#endif
  threads_->Expect(3);
  clock_.AwaitWaiters(2);
  EXPECT_TRUE(threads_->Add(works_.emplace_back()));
  works_[0].AwaitRuns(1);
  {
    const NoMoreThreads none;
    EXPECT_FALSE(threads_->Add(works_.emplace_back()));
    EXPECT_FALSE(threads_->Add(works_.emplace_back()));
    EXPECT_TRUE(threads_->crowded());
    works_[0].Release();
    works_[1].AwaitRuns(1);
    EXPECT_FALSE(works_[2].begun());
    works_[1].Release();
    works_[2].AwaitRuns(1);
    EXPECT_FALSE(threads_->crowded());
  }
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(threads_->Add(works_.emplace_back())) << "now there are some";
  works_[3].AwaitRuns(1);
}

TEST_F(ExecutorThreadsTest, AlarmsRingOnceAtTheirTime) {
  CountingAlarm first, second;
  threads_->Register(first);
  threads_->Register(second);
  threads_->Set(second, clock_.Now() + absl::Seconds(2));
  threads_->Set(first, clock_.Now() + absl::Seconds(1));
  clock_.AwaitWaiters(2);
  clock_.Advance(absl::Seconds(1));
  while (first.rings == 0) std::this_thread::yield();
  EXPECT_EQ(second.rings, 0);
  clock_.Advance(absl::Seconds(1));
  while (second.rings == 0) std::this_thread::yield();
  threads_->Set(first, clock_.Now() + absl::Seconds(1));
  threads_->Unregister(first);
  threads_->Unregister(second);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(first.rings, 1);
  EXPECT_EQ(second.rings, 1);
}

TEST(ExecutorThreadsStartTest, WithoutThreadsThereAreNone) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer ends a process that can't start a thread";
#endif
  const NoMoreThreads none;
  EXPECT_THROW(ExecutorThreads threads(Clock::Real()), std::system_error);
}

// A hundred models on the threads of one, since no more can be started.
TEST(SharedExecutorsTest, RequestsOfAllModelsEndWhereThreadsAreFew) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer ends a process that can't start a thread";
#endif
  constexpr size_t kModels = 100, kRequests = 10;
  const auto threads = std::make_shared<ExecutorThreads>(Clock::Real());
  std::vector<std::unique_ptr<Batcher>> batchers;
  for (size_t i = 0; i < kModels; ++i) {
    batchers.push_back(*NewBatcher(std::make_shared<ScriptedModel>(ScriptedSpec(1)), Clock::Real(), nullptr, threads));
  }
  std::deque<Outcome> outcomes(kModels * kRequests);
  const NoMoreThreads none;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const auto ticket = batchers[i % kModels]->Submit(NumberedRequest(static_cast<int>(i)), outcomes[i].Callback());
    EXPECT_TRUE(ticket.ok());
  }
  for (Outcome& outcome : outcomes) EXPECT_TRUE(outcome.Wait().ok());
}

TEST(SharedExecutorsTest, DeadlinesAreSeenWhereNoThreadIsFree) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer ends a process that can't start a thread";
#endif
  FakeClock clock;
  const auto threads = std::make_shared<ExecutorThreads>(clock);
  const auto busy = std::make_shared<ScriptedModel>(ScriptedSpec(1));
  const auto occupied = *NewBatcher(busy, clock, nullptr, threads);
  const auto waiting = *NewBatcher(std::make_shared<ScriptedModel>(ScriptedSpec(1)), clock, nullptr, threads);
  clock.AwaitWaiters(2);
  busy->Block();
  Outcome first, late;
  ASSERT_TRUE(occupied->Submit(NumberedRequest(1), first.Callback()).ok());
  busy->AwaitStarted(1);
  {
    const NoMoreThreads none;
    Request request = NumberedRequest(2);
    request.deadline = clock.Now() + absl::Milliseconds(5);
    ASSERT_TRUE(waiting->Submit(std::move(request), late.Callback()).ok());
  }
  clock.Advance(absl::Milliseconds(5));
  EXPECT_EQ(late.WaitForCode(), StatusCode::kDeadlineExceeded);
  busy->Release();
  EXPECT_TRUE(first.Wait().ok());
}

}  // namespace
}  // namespace swizzle
