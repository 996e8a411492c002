#include "kernels/cpu/int8/function_bytes.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VBMI
namespace swizzle::cpu {

void LookUpBytes(const uint8_t* table, const uint8_t* from, int64_t count, uint8_t* to) {
  using vnni::kLanes;
  __m512i of[kByteValues / kLanes];
  for (int64_t i = 0; i < kByteValues / kLanes; ++i) of[i] = vnni::Load(table + i * kLanes);
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask64 inside = vnni::BytesFrom(0, count - i);
    const __m512i at = _mm512_maskz_loadu_epi8(inside, from + i);
    // The highest bit of a byte chooses the half of the table, the others a place in it.
    const __m512i low = _mm512_permutex2var_epi8(of[0], at, of[1]);
    const __m512i high = _mm512_permutex2var_epi8(of[2], at, of[3]);
    _mm512_mask_storeu_epi8(to + i, inside, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI
