// What a machine can do at most, which kernels are measured against: multiply-adds on registers alone, reads of memory,
// and a cache line's way between two processors.
#ifndef SWIZZLE_TESTS_BENCH_MACHINE_PEAKS_H_
#define SWIZZLE_TESTS_BENCH_MACHINE_PEAKS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace swizzle::bench {

// GFLOP/s of one thread right now, with the widest instructions among `features` (bits of Backend::features()). Takes
// about 50 us; clocks and neighbours change, so measure it right beside what it is compared with.
double FmaPeakGflops(uint32_t features);

// GB/s of `threads` threads together, each of which reads `bytes_each` of its own again and again, with the widest
// instructions among `features`. Takes some 10 ms, or twice as long as reading it once.
double ReadGigabytesPerSecond(uint32_t features, int threads, int64_t bytes_each);

// Nanoseconds that a cache line takes from this process's first processor to its second and back: some 100 where they
// share a last-level cache, 350 and more where they don't. Threads that share a small layer wait for a few of these.
// Virtual machines change between the two by the second, so measure it before and after what it is to explain. The
// median of some samples, which take less than a millisecond; none where there is one processor.
std::optional<double> LineRoundTripNanoseconds();

// That now, for a line of a table: ", a line there and back 104 ns"; empty where there is none.
std::string RoundTripText();

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_MACHINE_PEAKS_H_
