// What a machine can do at most, which kernels are measured against: multiply-adds on registers alone, and reads of
// memory.
#ifndef SWIZZLE_TESTS_BENCH_MACHINE_PEAKS_H_
#define SWIZZLE_TESTS_BENCH_MACHINE_PEAKS_H_

#include <cstdint>

namespace swizzle::bench {

// GFLOP/s of one thread right now, with the widest instructions among `features` (bits of Backend::features()). Takes
// about 50 us; clocks and neighbours change, so measure it right beside what it is compared with.
double FmaPeakGflops(uint32_t features);

// GB/s of `threads` threads together, each of which reads `bytes_each` of its own again and again, with the widest
// instructions among `features`. Takes some 10 ms, or twice as long as reading it once.
double ReadGigabytesPerSecond(uint32_t features, int threads, int64_t bytes_each);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_MACHINE_PEAKS_H_
