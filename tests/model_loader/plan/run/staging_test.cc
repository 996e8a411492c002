// What stands between requests and a device with memory of its own.
#include "model_loader/plan/run/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RoundedCountTest, IsExactUpTo16AndThenAtMostAnEighthMore) {
  for (int64_t count = 1; count <= 20000; ++count) {
    const int64_t rounded = RoundedCount(count, 1 << 20);
    ASSERT_GE(rounded, count);
    ASSERT_LE(8 * (rounded - count), count) << count;
    ASSERT_EQ(RoundedCount(rounded, 1 << 20), rounded) << count;
    ASSERT_TRUE(count > 16 || rounded == count) << count;
  }
  EXPECT_EQ(RoundedCount(61, 1 << 20), 64);
  EXPECT_EQ(RoundedCount(61, 62), 62);
  EXPECT_EQ(RoundedCount(9, 9), 9);
}

TEST(RoundedSizeTest, HasNoMoreRowsThanTokens) {
  const BatchSize most(64, 16384);
  EXPECT_EQ(RoundedSize({3, 3}, most, true).rows, 3);
  EXPECT_EQ(RoundedSize({3, 100}, most, true).rows, 4);
  EXPECT_EQ(RoundedSize({3, 100}, most, true).tokens, 104);
  EXPECT_EQ(RoundedSize({33, 500}, {40, 600}, true).rows, 40);
  EXPECT_EQ(RoundedSize({33}, {64}, false).rows, 36);
}

TEST(StagedSequencesTest, SpareSequencesAreEmptyAndSpareTokensUnowned) {
  const auto backend = NewCpuBackend();
  const auto stream = *backend->NewStream(1);
  const size_t bytes = StagedSequences::BytesFor({4, 16});
  const auto staged = std::make_unique<StagedSequences>(*backend->Allocate(bytes), *backend->Allocate(bytes));
  const std::vector<int32_t> begins = {0, 2, 5}, positions = {0, 1, 0, 1, 3};
  const std::vector<float> bias = {0, -1, 0, 0, -2};
  staged->Set({begins, positions, bias}, {4, 8});
  staged->QueueCopy(*stream);
  const Sequences& device = staged->on_device();
  EXPECT_THAT(device.begins, ElementsAre(0, 2, 5, 5, 5));
  EXPECT_THAT(device.positions, ElementsAre(0, 1, 0, 1, 3, 0, 0, 0));
  EXPECT_THAT(device.owners, ElementsAre(0, 0, 1, 1, 1, -1, -1, -1));
  EXPECT_THAT(device.key_bias, ElementsAre(0, -1, 0, 0, -2, 0, 0, 0));
  staged->Set({begins, positions, {}}, {2, 5});
  EXPECT_THAT(staged->on_device().key_bias, IsEmpty());
}

class CountedRecording final : public Recording {
 public:
  explicit CountedRecording(int& alive) : alive_(alive) { ++alive_; }
  ~CountedRecording() override { --alive_; }
  Status Replay() override { return absl::OkStatus(); }

 private:
  int& alive_;
};

TEST(RecordingsTest, TheOldestMakeRoom) {
  int alive = 0;
  Recordings recordings;
  for (int64_t rows = 1; rows <= 200; ++rows)
    recordings.Add({rows, 0, false}, std::make_unique<CountedRecording>(alive));
  EXPECT_EQ(alive, 128);
  EXPECT_EQ(recordings.Find({1, 0, false}), nullptr);
  EXPECT_NE(recordings.Find({200, 0, false}), nullptr);
  EXPECT_EQ(recordings.Find({200, 0, true}), nullptr);
  EXPECT_TRUE(recordings.Contains({200, 0, false}));
  EXPECT_FALSE(recordings.Contains({1, 0, false}));
}

TEST(RecordingsTest, RemembersWhatCannotBeRecorded) {
  Recordings recordings;
  recordings.Add({3, 0, false}, nullptr);
  EXPECT_EQ(recordings.Find({3, 0, false}), nullptr);
  EXPECT_TRUE(recordings.Contains({3, 0, false}));
}

}  // namespace
}  // namespace swizzle
