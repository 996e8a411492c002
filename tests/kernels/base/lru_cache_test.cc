#include "kernels/base/lru_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace swizzle {
namespace {

using Cache = LruCache<std::vector<int64_t>, std::string>;

TEST(LruCache, FindsWhatItKeeps) {
  Cache cache(100);
  EXPECT_EQ(cache.Find({1, 2}), nullptr);
  cache.Keep({1, 2}, "a", 10);
  cache.Keep({2, 1}, "b", 10);
  ASSERT_NE(cache.Find({1, 2}), nullptr);
  EXPECT_EQ(*cache.Find({1, 2}), "a");
  EXPECT_EQ(*cache.Find({2, 1}), "b");
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.bytes(), 20);
}

TEST(LruCache, WhatWasAskedForLongestAgoGoesFirst) {
  Cache cache(30);
  for (const int64_t key : {1, 2, 3}) cache.Keep({key}, "", 10);
  cache.Find({1});
  cache.Keep({4}, "", 10);
  EXPECT_EQ(cache.Find({2}), nullptr);
  for (const int64_t key : {1, 3, 4}) EXPECT_NE(cache.Find({key}), nullptr) << key;
  EXPECT_EQ(cache.bytes(), 30);
}

TEST(LruCache, ALargeValueTakesTheRoomOfSeveral) {
  Cache cache(30);
  for (const int64_t key : {1, 2, 3}) cache.Keep({key}, "", 10);
  cache.Keep({4}, "", 15);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_NE(cache.Find({3}), nullptr);
  cache.Keep({5}, "", 1000);
  EXPECT_EQ(cache.size(), 1u) << "what was kept last stays, however large it is";
  EXPECT_NE(cache.Find({5}), nullptr);
  cache.Keep({6}, "", 10);
  EXPECT_EQ(cache.Find({5}), nullptr);
  EXPECT_EQ(cache.bytes(), 10);
}

TEST(LruCache, AKeysValueIsReplaced) {
  Cache cache(100);
  cache.Keep({1}, "a", 10);
  EXPECT_EQ(cache.Keep({1}, "b", 30), "b");
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(cache.bytes(), 30);
}

TEST(LruCache, ForgetsByKey) {
  Cache cache(100);
  for (const int64_t key : {1, 2, 3, 4}) cache.Keep({key}, "", 10);
  cache.ForgetIf([](const std::vector<int64_t>& key) { return key[0] % 2 == 0; });
  EXPECT_EQ(cache.Find({2}), nullptr);
  EXPECT_EQ(cache.Find({4}), nullptr);
  EXPECT_NE(cache.Find({1}), nullptr);
  EXPECT_EQ(cache.bytes(), 20);
}

}  // namespace
}  // namespace swizzle
