#include "server/security/reloads.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

TEST(ReloadLogTest, SaysAnErrorOnceWhenItLasts) {
  ReloadLog log;
  const Status mismatch = InvalidArgument("they do not fit");
  EXPECT_TRUE(log.Failed(mismatch).error.ok()) << "the other file may be on its way";
  EXPECT_TRUE(log.failing());
  EXPECT_EQ(log.Failed(mismatch).error, mismatch);
  EXPECT_TRUE(log.Failed(mismatch).error.ok()) << "it was said";
  EXPECT_EQ(log.counts().failed, 1);
  const Status gone = InvalidArgument("it is gone");
  EXPECT_TRUE(log.Failed(gone).error.ok());
  EXPECT_EQ(log.Failed(gone).error, gone);
  EXPECT_TRUE(log.Replaced().replaced);
  EXPECT_FALSE(log.failing());
  EXPECT_EQ(log.counts().replaced, 1);
  log.Failed(gone);
  EXPECT_EQ(log.Failed(gone).error, gone) << "anew, after it was well";
}

TEST(ReloadLogTest, WhatEndsBeforeASecondLookIsNoError) {
  ReloadLog log;
  log.Failed(InvalidArgument("they do not fit"));
  log.Unchanged();
  EXPECT_FALSE(log.failing());
  EXPECT_EQ(log.counts().failed, 0);
}

}  // namespace
}  // namespace swizzle
