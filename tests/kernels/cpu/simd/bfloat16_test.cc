// Widening and rounding on every instruction set of this machine, against the scalar functions of kernels/half.h.
#include "kernels/cpu/simd/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/base/half.h"

namespace swizzle::cpu {
namespace {

struct Functions {
  const char* name;
  uint32_t required;
  void (*widen)(const Bfloat16*, int64_t, float*);
  void (*round)(const float*, int64_t, Bfloat16*);
};

constexpr Functions kAll[] = {{"widest", kAnyX86, Widen, Round},
                              {"avx512", kAvx512, N_AVX3::Widen, N_AVX3::Round},
                              {"avx2", kAvx2, N_AVX2::Widen, N_AVX2::Round},
                              {"base", kAnyX86, N_EMU128::Widen, N_EMU128::Round}};

template <typename Check>
void ForEach(const Check& check) {
  for (const Functions& functions : kAll) {
    SCOPED_TRACE(functions.name);
    if ((functions.required & ~DetectFeatures()) == 0) check(functions);
  }
}

// All there are, with numbers between them: halfway to the next, and a bit to either side.
TEST(Bfloat16VectorsTest, RoundsAsTheScalarFunction) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    for (const uint32_t rest : {0x0u, 0x1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      values.push_back(std::bit_cast<float>(bits << 16 | rest));
    }
  }
  ForEach([&](const Functions& functions) {
    std::vector<Bfloat16> rounded(values.size());
    functions.round(values.data(), static_cast<int64_t>(values.size()), rounded.data());
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(FloatOfBfloat16(rounded[i]))) << std::bit_cast<uint32_t>(values[i]);
      } else {
        ASSERT_EQ(rounded[i], Bfloat16OfFloat(values[i])) << values[i];
      }
    }
  });
}

TEST(Bfloat16VectorsTest, WidensExactly) {
  std::vector<Bfloat16> values;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) values.push_back(static_cast<Bfloat16>(bits));
  ForEach([&](const Functions& functions) {
    std::vector<float> widened(values.size());
    functions.widen(values.data(), static_cast<int64_t>(values.size()), widened.data());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(widened[i]), static_cast<uint32_t>(values[i]) << 16);
    }
  });
}

TEST(Bfloat16VectorsTest, LeavesWhatFollowsAlone) {
  ForEach([](const Functions& functions) {
    for (int64_t count = 0; count < 70; ++count) {
      const std::vector<float> values(count, 1.5f);
      std::vector<Bfloat16> rounded(count + 20, 7);
      functions.round(values.data(), count, rounded.data());
      std::vector<float> widened(count + 20, 7.0f);
      functions.widen(rounded.data(), count, widened.data());
      for (int64_t i = 0; i < count + 20; ++i) {
        ASSERT_EQ(rounded[i], i < count ? Bfloat16OfFloat(1.5f) : 7) << count;
        ASSERT_EQ(widened[i], i < count ? 1.5f : 7.0f) << count;
      }
    }
  });
}

}  // namespace
}  // namespace swizzle::cpu
