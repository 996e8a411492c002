#include "model_loader/plan/run/program.h"

#include <gtest/gtest.h>

#include <utility>

namespace swizzle {
namespace {

ArenaBucket Bucket(int64_t rows, size_t bytes) {
  return {.size = BatchSize(rows), .offsets = {}, .places = {}, .workspace_bytes = bytes};
}

// Kernels of few rows may take more than those of many: whoever has memory for a batch runs its parts in it, too.
TEST(ProgramTest, AnArenaIsLargeEnoughForSmallerBatches) {
  ProgramParts parts;
  parts.buckets = {Bucket(1, 0), Bucket(2, 4096), Bucket(4, 1024), Bucket(8, 8192)};
  const Program program(std::move(parts));
  EXPECT_EQ(program.ArenaBytes(BatchSize(1)), kBufferAlignment);
  EXPECT_EQ(program.ArenaBytes(BatchSize(2)), 4096u);
  EXPECT_EQ(program.ArenaBytes(BatchSize(3)), 4096u);
  EXPECT_EQ(program.ArenaBytes(BatchSize(8)), 8192u);
}

}  // namespace
}  // namespace swizzle
