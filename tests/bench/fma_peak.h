// The rate of fused multiply-adds on registers alone: the ceiling that kernels are measured against.
#ifndef SWIZZLE_TESTS_BENCH_FMA_PEAK_H_
#define SWIZZLE_TESTS_BENCH_FMA_PEAK_H_

#include <cstdint>

namespace swizzle::bench {

// GFLOP/s of one thread right now, with the widest instructions among `features` (bits of Backend::features()). Takes
// about 50 us; clocks and neighbours change, so measure it right beside what it is compared with.
double FmaPeakGflops(uint32_t features);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_FMA_PEAK_H_
