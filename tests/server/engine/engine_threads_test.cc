#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "model_loader/packed/packed_writer.h"
#include "server/engine/engine.h"
#include "tests/support/random_encoder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::engine {
namespace {

using swizzle::testing::IsOk;

// Runs of an encoder from many threads, in children, and beside what tunes it.
class EngineThreadsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kLength = 12;

  EngineThreadsTest() {
    const Status written = WritePacked(swizzle::testing::MakeRandomEncoder({.positions = 0}), file_);
    SWIZZLE_CHECK(written.ok());
  }
  std::unique_ptr<Model> Open(Options options) const {
    auto model = Model::Open(file_, options);
    SWIZZLE_CHECK(model.ok());
    return *std::move(model);
  }
  // The "pooled" output for a sequence that begins with `id`.
  static absl::StatusOr<std::string> Pooled(Model& model, int64_t id) {
    std::vector<int64_t> ids(kLength, 7), mask(kLength, 1), shape = {1, kLength};
    std::vector<int32_t> types(kLength, 0);
    ids[0] = id;
    const std::vector<InputView> inputs = {{"input_ids", "INT64", shape, std::as_bytes(std::span(ids))},
                                           {"attention_mask", "INT64", shape, std::as_bytes(std::span(mask))},
                                           {"token_type_ids", "INT32", shape, std::as_bytes(std::span(types))}};
    const std::vector<std::string> outputs = {"pooled"};
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<Output> results, model.Run(inputs, outputs));
    return std::move(results[0].data);
  }
  static bool InChild(const std::function<bool()>& check) {
    const pid_t child = fork();
    if (child == 0) _exit(check() ? 0 : 1);
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "encoder.swz";
};

TEST_F(EngineThreadsTest, ThreadsShareAModel) {
  for (const int concurrency : {1, 3}) {
    const auto model = Open({.threads = 2, .concurrency = concurrency});
    std::vector<std::string> alone;
    for (int64_t id = 0; id < 4; ++id) alone.push_back(*Pooled(*model, id));
    std::vector<std::thread> threads;
    for (int64_t id = 0; id < 4; ++id) {
      threads.emplace_back([&, id] {
        for (int i = 0; i < 20; ++i) {
          const auto pooled = Pooled(*model, id);
          ASSERT_THAT(pooled, IsOk());
          ASSERT_EQ(*pooled, alone[static_cast<size_t>(id)]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(EngineThreadsTest, TunesNowAndKeepsTheTimes) {
  const auto cache = folder_ / "times";
  const auto model =
      Open({.threads = 1, .tuning_budget = absl::Milliseconds(200), .tune_now = true, .tuning_cache = cache});
  EXPECT_TRUE(model->tuned());
  EXPECT_GT(std::filesystem::file_size(cache), 0u);
  EXPECT_THAT(Pooled(*model, 1), IsOk());
}

TEST_F(EngineThreadsTest, TunesInIdleTime) {
  const auto first = Open({.threads = 1, .tuning_budget = absl::Milliseconds(200)});
  const auto second = Open({.threads = 1, .tuning_budget = absl::Milliseconds(200)});
  const std::string before = *Pooled(*Open({.threads = 1}), 1);
  while (!first->tuned() || !second->tuned()) std::this_thread::yield();
  EXPECT_EQ(Pooled(*first, 1)->size(), before.size());
}

TEST_F(EngineThreadsTest, ModelsMayBeClosedWhileTheyAreTuned) {
  for (int i = 0; i < 3; ++i) Open({.threads = 1, .tuning_budget = absl::Minutes(10)});
}

#ifndef SWIZZLE_THREAD_SANITIZER  // which has no use for threads in children of processes with threads

TEST_F(EngineThreadsTest, ChildrenRunWhatTheirParentOpened) {
  auto model = Open({.threads = 2, .concurrency = 2});
  const std::string expected = *Pooled(*model, 3);
  EXPECT_TRUE(InChild([&] {
    bool right = true;
    for (int i = 0; i < 3; ++i) {
      const auto pooled = Pooled(*model, 3);
      right = right && pooled.ok() && *pooled == expected;
    }
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { wrong += *Pooled(*model, 3) != expected; });
    for (std::thread& thread : threads) thread.join();
    model.reset();
    return right && wrong == 0;
  }));
  EXPECT_EQ(*Pooled(*model, 3), expected);
}

TEST_F(EngineThreadsTest, ChildrenMayOpenWhatTheyCannotHave) {
  const auto tuned = Open({.threads = 1, .tuning_budget = absl::Minutes(10)});
  EXPECT_TRUE(InChild([&] {
    const auto pooled = Pooled(*tuned, 3);  // it depends on what was going on
    if (!pooled.ok() && !absl::IsFailedPrecondition(pooled.status())) return false;
    const auto own = Open({.threads = 1, .tuning_budget = absl::Minutes(10)});
    return Pooled(*own, 3).ok();
  }));
}

#endif

}  // namespace
}  // namespace swizzle::engine
