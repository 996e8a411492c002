#include "kernels/base/half_bits.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace swizzle {
namespace {

template <DType kHalf>
void StoreOneByOne(std::span<const float> values, std::byte* halves) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = HalfBits<kHalf>(values[i]);
    std::memcpy(halves + i * sizeof(half), &half, sizeof(half));
  }
}

#if defined(__x86_64__)

// FP16, eight at a time; returns how many.
__attribute__((target("avx,f16c"))) size_t StoreEights(std::span<const float> values, std::byte* halves) {
  const size_t count = values.size() / 8 * 8;
  for (size_t i = 0; i < count; i += 8) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(values.data() + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i * sizeof(uint16_t)), bits);
  }
  return count;
}

// Every processor with AVX2 has F16C, for which Clang 14 has no name here.
bool ConvertsEights() { return __builtin_cpu_supports("avx2") != 0; }

#else

size_t StoreEights(std::span<const float>, std::byte*) { return 0; }
bool ConvertsEights() { return false; }

#endif

}  // namespace

void StoreHalves(std::span<const float> values, DType dtype, std::byte* halves) {
  const size_t done = dtype == DType::kFloat16 && ConvertsEights() ? StoreEights(values, halves) : 0;
  VisitHalf(dtype,
            [&]<DType kHalf>() { StoreOneByOne<kHalf>(values.subspan(done), halves + done * sizeof(uint16_t)); });
}

}  // namespace swizzle
