#include "server/memory/memory_need.h"

#include <gmock/gmock.h>

namespace swizzle {
namespace {

constexpr int64_t kMiB = 1 << 20;

MemoryNeed Need(int64_t arena_mib, int64_t executors = 2) {
  return {.resident = 200 * kMiB, .executors = executors, .arena = arena_mib * kMiB, .row = kMiB, .largest = 64};
}

constexpr MemoryRoom kRoom = {.limit = 2048 * kMiB, .requests = 500 * kMiB, .promised = 100 * kMiB};

TEST(FitToMemory, LeavesAModelThatFitsAlone) {
  const auto fit = FitToMemory(Need(500), kRoom);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->largest, 64);
  EXPECT_EQ(fit->promised, 2 * (500 + 64) * kMiB);
  EXPECT_EQ(fit->why, "");
}

TEST(FitToMemory, LowersTheLargestBatchAndSaysWhy) {
  const auto fit = FitToMemory(Need(2000), kRoom);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->largest, 16);
  EXPECT_EQ(fit->promised, 2 * (500 + 16) * kMiB);
  EXPECT_EQ(fit->why,
            "at batches of 64 it needs 4128 MiB beside its weights, and of 2048 MiB of memory 1248 MiB are left, with "
            "what is loaded, what was promised to it, and 500 MiB for requests");
}

TEST(FitToMemory, LowersToNoLessThanTheModelCanDo) {
  MemoryNeed need = Need(2000);
  need.least = 20;
  EXPECT_FALSE(FitToMemory(need, kRoom).ok());
  need.least = 17;
  const auto fit = FitToMemory(need, kRoom);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->largest, 17);
}

TEST(FitToMemory, RefusesWhatHasNoRoomAtAll) {
  for (const int64_t largest : {1, 64}) {
    MemoryNeed need = Need(200'000);
    need.largest = largest;
    const auto fit = FitToMemory(need, kRoom);
    EXPECT_EQ(fit.status().code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(fit.status().message()),
                ::testing::HasSubstr("there is no room for it in memory: at batches of"));
    EXPECT_THAT(std::string(fit.status().message()), ::testing::HasSubstr("give the server more memory"));
  }
  MemoryNeed fixed = Need(2000);
  fixed.least = fixed.largest;
  EXPECT_FALSE(FitToMemory(fixed, kRoom).ok()) << "a fixed batch cannot be lowered";
  EXPECT_FALSE(FitToMemory(Need(1), {.limit = 100 * kMiB}).ok()) << "less than is taken already";
}

TEST(FitToMemory, ModelsAreTunedOneByOne) {
  MemoryNeed need = Need(100, 1);
  need.tuned = true;
  MemoryRoom room = kRoom;
  const auto first = FitToMemory(need, room);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->promised, (100 + 64 + 100) * kMiB);
  EXPECT_EQ(first->spare, 100 * kMiB);
  room.spare = first->spare;
  need.arena = 150 * kMiB;
  const auto second = FitToMemory(need, room);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->promised, (150 + 64 + 50) * kMiB) << "of the spare executor only what it is larger by";
  EXPECT_EQ(second->spare, 150 * kMiB);
}

TEST(FitToMemory, WithoutALimitEverythingFits) {
  const auto fit = FitToMemory(Need(200'000), {});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->largest, 64);
}

TEST(CheckRoomFor, RefusesWhatIsLargerThanWhatIsLeft) {
  EXPECT_TRUE(CheckRoomFor("files", 1248 * kMiB, 200 * kMiB, kRoom).ok());
  EXPECT_TRUE(CheckRoomFor("files", 1248 * kMiB, 200 * kMiB, {}).ok()) << "no limit is known";
  const Status status = CheckRoomFor("files", 1249 * kMiB, 200 * kMiB, kRoom);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "there is no room for it in memory: its files have 1249 MiB, and of 2048 MiB of memory 1248 MiB are left, "
            "with what is "
            "loaded, what was promised to it, and 500 MiB for requests; give the server more memory");
}

TEST(FitToMemory, OnADeviceNamesItAndCountsItsStreams) {
  const MemoryRoom room = {.limit = 16384 * kMiB, .device = "cuda:0"};
  MemoryNeed need = {
      .resident = 1000 * kMiB, .executors = 2, .stream = 64 * kMiB, .arena = 6000 * kMiB, .tuned = true, .largest = 64};
  const auto fit = FitToMemory(need, room);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->largest, 32);
  EXPECT_EQ(fit->promised, 3 * (64 + 3000) * kMiB);
  EXPECT_EQ(fit->spare, (64 + 3000) * kMiB);
  EXPECT_EQ(fit->why,
            "at batches of 64 it needs 18192 MiB beside its weights, and of 16384 MiB of cuda:0 15384 MiB are left, "
            "with what is in use there and what models are tuned in");
  need.executors = 240;
  EXPECT_EQ(std::string(FitToMemory(need, room).status().message()),
            Concat("there is no room for it in the memory of cuda:0: at batches of 64 it needs ", 241 * 6064,
                   " MiB beside its weights, and of 16384 MiB of cuda:0 15384 MiB are left, with what is in use there "
                   "and what models are tuned in; give it a device with more memory, or the model smaller batches or "
                   "fewer instances"));
  EXPECT_EQ(std::string(CheckRoomFor("weights", 20000 * kMiB, 1000 * kMiB, room).message()),
            "there is no room for it in the memory of cuda:0: its weights have 20000 MiB, and of 16384 MiB of cuda:0 "
            "15384 MiB are left, with what is in use there and what models are tuned in; give it a device with more "
            "memory");
}

TEST(FitToMemory, HugeNeedsDoNotWrap) {
  MemoryNeed need = Need(int64_t{1} << 42, 1 << 20);
  need.row = int64_t{1} << 60;
  need.largest = int64_t{1} << 40;
  EXPECT_FALSE(FitToMemory(need, kRoom).ok());
}

}  // namespace
}  // namespace swizzle
