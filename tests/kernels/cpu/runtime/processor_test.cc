#include "kernels/cpu/runtime/processor.h"

#include <gtest/gtest.h>

#include <sstream>

namespace swizzle::cpu {
namespace {

TEST(ProcessorTest, IsTheFirstOfTheFile) {
  std::istringstream file(
      "processor\t: 0\n"
      "vendor_id\t: AuthenticAMD\n"
      "cpu family\t: 25\n"
      "model\t\t: 17\n"
      "model name\t: AMD EPYC\n"
      "flags\t\t: fpu sse2 fma avx512f avx avx2 f16c avx512_bf16 sha_ni\n"
      "\n"
      "processor\t: 1\n"
      "model name\t: another\n");
  const Processor processor = ParseProcessor(file);
  EXPECT_EQ(processor.name, "AMD EPYC");
  EXPECT_EQ(processor.Identity(), "AuthenticAMD family 25 model 17");
  EXPECT_EQ(processor.instruction_sets, "avx avx2 fma f16c avx512f avx512_bf16");
}

TEST(ProcessorTest, MayBeUnknown) {
  std::istringstream file("Hardware : something\n");
  const Processor processor = ParseProcessor(file);
  EXPECT_EQ(processor.name, "unknown processor");
  EXPECT_EQ(processor.instruction_sets, "");
}

TEST(ProcessorTest, ThisOneHasAName) { EXPECT_FALSE(ThisProcessor().name.empty()); }

}  // namespace
}  // namespace swizzle::cpu
