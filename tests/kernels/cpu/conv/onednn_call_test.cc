// What oneDNN throws ends a run with a Status, not the process.
#include "kernels/cpu/conv/onednn_call.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "kernels/cpu/conv/onednn_conv.h"
#include "kernels/cpu/conv/sgemm.h"
#include "tests/support/process_limits.h"

namespace swizzle::cpu {
namespace {

TEST(CallOnednnTest, WorkThatSucceedsIsOk) {
  bool called = false;
  EXPECT_TRUE(CallOnednn([&] { called = true; }).ok());
  EXPECT_TRUE(called);
}

TEST(CallOnednnTest, WhatIsThrownIsAStatus) {
  EXPECT_EQ(CallOnednn([] { throw dnnl::error(dnnl_out_of_memory, "could not execute"); }),
            MakeError(StatusCode::kResourceExhausted, "oneDNN ran out of memory: could not execute"));
  EXPECT_EQ(CallOnednn([] { throw dnnl::error(dnnl_unimplemented, "x"); }).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(CallOnednn([] { throw dnnl::error(dnnl_runtime_error, "x"); }).code(), StatusCode::kInternal);
  EXPECT_EQ(CallOnednn([] { throw std::bad_alloc(); }).code(), StatusCode::kResourceExhausted);
}

TEST(SgemmTest, StridesShorterThanRowsFail) {
  const std::vector<float> a(32, 1.0f), b(16, 1.0f);
  std::vector<float> c(32);
  EXPECT_TRUE(Sgemm(8, 4, 4, {a.data(), 4}, {b.data(), 4}, c.data(), 4).ok());
  EXPECT_FALSE(Sgemm(8, 4, 4, {a.data(), 3}, {b.data(), 4}, c.data(), 4).ok());
}

// How many mappings of memory that hold generated code.
int CodeMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("rwxp") != std::string::npos;
  return count;
}

// What is generated later would be when memory may be short: oneDNN writes it without having looked whether it got any.
TEST(SgemmTest, OnceItIsPreparedNoCodeIsGenerated) {
  ASSERT_TRUE(PrepareSgemm().ok());
  const int before = CodeMappings();
  const std::vector<float> operand(600 * 600, 1.0f);
  std::vector<float> c(600 * 600);
  for (const int64_t m : {1, 2, 5, 8, 16, 17, 49, 128, 600}) {
    for (const int64_t n : {1, 3, 4, 16, 31, 64, 512}) {
      for (const int64_t k : {1, 2, 4, 15, 64, 257, 512}) {
        for (int turned = 0; turned < 4; ++turned) {
          const bool a = turned & 1, b = turned & 2;
          ASSERT_TRUE(Sgemm(m, n, k, {operand.data(), a ? m : k, a}, {operand.data(), b ? k : n, b}, c.data(), n).ok());
          ASSERT_EQ(CodeMappings(), before) << m << "x" << n << "x" << k << ", " << turned;
        }
      }
    }
  }
}

// In a process of its own, and, by its suite's name, before other tests: products that are prepared need no room.
TEST(MakeOnednnDeathTest, WithoutRoomForCodeNothingIsMade) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers take address space of their own";
#endif
  const auto make = [] {
    LimitAddresses(size_t{4} << 20);
    bool called = false;
    const bool refused = MakeOnednn([&] { called = true; }).code() == StatusCode::kResourceExhausted &&
                         PrepareSgemm().code() == StatusCode::kResourceExhausted;
    const float a[64] = {}, b[64] = {};
    float c[64] = {};  // of more rows than few_rows.h takes
    const bool fails = Sgemm(8, 8, 8, {a, 8}, {b, 8}, c, 8).code() == StatusCode::kResourceExhausted;
    std::_Exit(refused && fails && !called ? 0 : 1);
  };
  EXPECT_EXIT(make(), ::testing::ExitedWithCode(0), "");
}

// A window whose output does not follow from its input.
Problem Impossible() {
  Problem problem;
  problem.op = Op::kConv;
  problem.input = {1, 16, 8, 8};
  problem.output = {1, 16, 100, 100};
  problem.window() = {3, 3, 1, 1, 0, 0, 0, 0, 1, 1, false};
  problem.threads = 2;
  return problem;
}

TEST(OnednnConvTest, AWorkspaceThatCannotBeSaidIsMoreThanThereIs) {
  EXPECT_FALSE(AcceptsOnednnConv(Impossible()));
  EXPECT_GT(OnednnConvWorkspaceBytes(Impossible()), size_t{1} << 50);
}

}  // namespace
}  // namespace swizzle::cpu
