#include "server/model/rows_at_once.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <set>

namespace swizzle {
namespace {

// After batches of so many rows, of which a part of so many takes so long.
RowsAtOnce Learned(int64_t rows, const std::function<absl::Duration(int64_t)>& time) {
  RowsAtOnce learned;
  for (int batch = 0; batch < 100; ++batch) {
    const int64_t at_once = learned.For(rows);
    absl::Duration all;
    for (int64_t first = 0; first < rows; first += at_once) all += time(std::min(at_once, rows - first));
    learned.Note(rows, at_once, all);
  }
  return learned;
}

TEST(RowsAtOnceTest, AllWhereThatIsFastest) {
  const RowsAtOnce learned = Learned(64, [](int64_t rows) { return absl::Microseconds(100 + rows); });
  EXPECT_EQ(learned.For(64), 64);
  EXPECT_EQ(learned.For(50), 50);
  EXPECT_EQ(learned.For(3), 3);
}

TEST(RowsAtOnceTest, FewWhereManyLeaveTheCaches) {
  const auto time = [](int64_t rows) { return absl::Microseconds((rows > 4 ? 100 : 50) * rows + 10); };
  const RowsAtOnce learned = Learned(32, time);
  EXPECT_EQ(learned.For(32), 4);
  EXPECT_EQ(learned.For(17), 4);
  EXPECT_EQ(learned.For(3), 3);
  EXPECT_EQ(learned.For(1), 1);
}

TEST(RowsAtOnceTest, TriesEachNumberTheLargestFirst) {
  RowsAtOnce learned;
  std::vector<int64_t> tried;
  for (int batch = 0; batch < 5 * (RowsAtOnce::kFirstRuns + RowsAtOnce::kComparedRuns); ++batch) {
    const int64_t at_once = learned.For(12);
    if (tried.empty() || tried.back() != at_once) tried.push_back(at_once);
    learned.Note(12, at_once, absl::Milliseconds(1));
  }
  EXPECT_EQ(tried, (std::vector<int64_t>{12, 8, 4, 2, 1}));
  EXPECT_EQ(learned.For(12), 12) << "of equal ones the largest";
}

// Memory that is taken, and work that is recorded, count for nothing.
TEST(RowsAtOnceTest, TheFirstRunsAreNotCompared) {
  std::multiset<int64_t> runs;
  const RowsAtOnce learned = Learned(8, [&](int64_t rows) {
    runs.insert(rows);
    return absl::Microseconds(runs.count(rows) <= 4 && rows == 8 ? 1000000 : 100);
  });
  EXPECT_EQ(learned.For(8), 8);
}

TEST(RowsAtOnceTest, TakesBatchesOfAnySize) {
  RowsAtOnce learned;
  EXPECT_EQ(learned.For(int64_t{1} << 40), int64_t{1} << 15);
  learned.Note(int64_t{1} << 40, int64_t{1} << 15, absl::Seconds(1));
  EXPECT_EQ(learned.For(0), 0);
}

}  // namespace
}  // namespace swizzle
