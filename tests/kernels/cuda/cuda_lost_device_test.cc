// A device that is lost to the process: a program of its own, since nothing else can run after it.
#include <gtest/gtest.h>

#include <array>

#include "kernels/cuda/cuda_backend.h"

namespace swizzle {
namespace {

const Kernel* SumInRows(const Backend& backend) {
  for (const Kernel& kernel : backend.kernels()) {
    const KernelKey& key = kernel.key;
    if (key.op == Op::kAdd && key.input == Storage{Layout::kRows, DType::kFloat32}) return &kernel;
  }
  return nullptr;
}

TEST(CudaBackend, IsUnhealthyAfterAnErrorThatSticks) {
  auto made = NewCudaBackend(0);
  if (!made.ok()) GTEST_SKIP() << made.status().message();
  Backend& backend = **made;
  const Kernel* const sum = SumInRows(backend);
  ASSERT_NE(sum, nullptr);
  Problem problem;
  problem.SetOp(Op::kAdd);
  problem.input = problem.output = {64, 8};
  problem = AsRowSolves(*sum, problem);
  auto stream = *backend.NewStream(1);
  auto other = *backend.NewStream(1);
  const auto operand = *backend.Allocate(size_t{64} * 8 * sizeof(float));
  const Operand input = {operand->data(), DType::kFloat32};
  const std::array inputs = {input, input};
  KernelArgs args;
  args.problem = &problem;
  args.inputs = inputs;
  args.output = {operand->data(), DType::kFloat32};

  stream->Run([&] { sum->run(args, *stream); });
  ASSERT_TRUE(stream->Synchronize().ok());
  ASSERT_TRUE(backend.health().ok());

  args.output.data = reinterpret_cast<void*>(uintptr_t{4096});  // nobody's memory
  stream->Run([&] { sum->run(args, *stream); });
  const Status failed = stream->Synchronize();
  EXPECT_EQ(failed.code(), StatusCode::kInternal) << failed;

  // The batch that failed had this error; the device's word is for readiness, which stays off from here on.
  const Status health = backend.health();
  ASSERT_FALSE(health.ok());
  EXPECT_NE(health.message().find("is lost to this process, which has to be restarted"), std::string::npos) << health;
  EXPECT_NE(health.message().find("illegal"), std::string::npos) << health;

  // Whoever goes on meets errors, not a crash.
  args.output = {operand->data(), DType::kFloat32};
  other->Run([&] { sum->run(args, *other); });
  EXPECT_FALSE(other->Synchronize().ok());
  EXPECT_FALSE(backend.Allocate(1 << 20).ok());
  EXPECT_FALSE(backend.NewStream(1).ok());
  EXPECT_FALSE(backend.health().ok());
}

}  // namespace
}  // namespace swizzle
