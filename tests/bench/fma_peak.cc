#include "tests/bench/fma_peak.h"

#include <chrono>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/fma_peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Floating-point operations of `rounds` rounds of independent multiply-adds. Their values stay 1.
double RunFmas(int rounds) {
  constexpr int kChains = HWY_TARGET == HWY_EMU128 ? 8 : 12;
  const hn::ScalableTag<float> d;
  auto a = hn::Set(d, 0.5f);
  hn::Vec<hn::ScalableTag<float>> chains[kChains];
  for (auto& chain : chains) chain = hn::Set(d, 1.0f);
  for (int i = 0; i < rounds; ++i) {
    HWY_UNROLL(12) for (int c = 0; c < kChains; ++c) chains[c] = hn::MulAdd(chains[c], a, a);
  }
  auto sum = chains[0];
  for (int c = 1; c < kChains; ++c) sum = hn::Add(sum, chains[c]);
  const bool as_expected = hn::GetLane(sum) == static_cast<float>(kChains);
  return as_expected ? 2.0 * rounds * kChains * hn::Lanes(d) : 0;
}

}  // namespace swizzle::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::bench {

double FmaPeakGflops(uint32_t features) {
  constexpr int kRounds = 10000;
  const auto run = features & cpu::kAvx512 ? N_AVX3::RunFmas
                   : features & cpu::kAvx2 ? N_AVX2::RunFmas
                                           : N_EMU128::RunFmas;
  const auto start = std::chrono::steady_clock::now();
  const double operations = run(kRounds);
  return operations / std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace swizzle::bench
#endif  // HWY_ONCE
