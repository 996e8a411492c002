#include "model_loader/plan/choose/candidate.h"

#include <gtest/gtest.h>

#include <limits>

namespace swizzle {
namespace {

constexpr double kFails = std::numeric_limits<double>::infinity();

std::vector<Candidate> Timed(const std::vector<std::vector<double>>& times) {
  std::vector<Candidate> candidates;
  for (const std::vector<double>& each : times) {
    candidates.emplace_back();
    candidates.back().microseconds = each;
    candidates.back().blocking = static_cast<int>(candidates.size());
  }
  return candidates;
}

// Kernels of a library may not take every batch size.
TEST(CandidateTest, WhatFailsAtOneSizeIsDropped) {
  std::vector<Candidate> timed = Timed({{1, kFails}, {2, 0}, {kFails, 3}, {4, 5}});
  std::vector<Candidate> candidates = Timed({{}, {}, {}, {}});
  DropFailing(timed, candidates);
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].blocking, 2);
  EXPECT_EQ(candidates[1].blocking, 4);
  EXPECT_EQ(timed.size(), 2u);
  EXPECT_EQ(timed[1].microseconds, (std::vector<double>{4, 5}));
}

TEST(CandidateTest, WhereAllFailAllStay) {
  std::vector<Candidate> timed = Timed({{kFails}, {kFails}});
  std::vector<Candidate> candidates = Timed({{}, {}});
  DropFailing(timed, candidates);
  EXPECT_EQ(candidates.size(), 2u);
}

}  // namespace
}  // namespace swizzle
