// What oneDNN throws ends a run with a Status, not the process.
#include "kernels/cpu/conv/onednn_call.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "kernels/cpu/conv/onednn_conv.h"
#include "kernels/cpu/conv/sgemm.h"

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
  const std::vector<float> a(16, 1.0f), b(16, 1.0f);
  std::vector<float> c(16);
  EXPECT_TRUE(Sgemm(4, 4, 4, {a.data(), 4}, {b.data(), 4}, c.data(), 4).ok());
  EXPECT_FALSE(Sgemm(4, 4, 4, {a.data(), 3}, {b.data(), 4}, c.data(), 4).ok());
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
