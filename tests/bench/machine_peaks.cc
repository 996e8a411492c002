#include "tests/bench/machine_peaks.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/cpu/runtime/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/machine_peaks.cc"
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

// The sum of `count` floats, a multiple of 8 vectors of them, aligned.
float SumFloats(const float* values, int64_t count) {
  constexpr int kChains = 8;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<hn::ScalableTag<float>> chains[kChains];
  for (auto& chain : chains) chain = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kChains * lanes) {
    HWY_UNROLL(8) for (int c = 0; c < kChains; ++c) chains[c] = hn::Add(chains[c], hn::Load(d, values + i + c * lanes));
  }
  auto sum = chains[0];
  for (int c = 1; c < kChains; ++c) sum = hn::Add(sum, chains[c]);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace swizzle::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::bench {

namespace {

using Clock = std::chrono::steady_clock;

double NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace

double FmaPeakGflops(uint32_t features) {
  constexpr int kRounds = 10000;
  const auto run = features & cpu::kAvx512 ? N_AVX3::RunFmas
                   : features & cpu::kAvx2 ? N_AVX2::RunFmas
                                           : N_EMU128::RunFmas;
  const auto start = Clock::now();
  const double operations = run(kRounds);
  return operations / NanosecondsSince(start);
}

double ReadGigabytesPerSecond(uint32_t features, int threads, int64_t bytes_each) {
  constexpr int64_t kUnit = 1024;  // bytes: a multiple of what SumFloats takes
  constexpr int64_t kEnough = int64_t{256} << 20;
  const auto sum = features & cpu::kAvx512 ? N_AVX3::SumFloats
                   : features & cpu::kAvx2 ? N_AVX2::SumFloats
                                           : N_EMU128::SumFloats;
  const int64_t bytes = std::max(bytes_each / kUnit, int64_t{1}) * kUnit;
  const int64_t floats = bytes / int64_t{sizeof(float)};
  const int64_t rounds = std::max<int64_t>(kEnough / bytes, 1);
  std::barrier ready(threads);
  std::vector<double> rates(threads);
  std::vector<std::thread> readers;
  for (int t = 0; t < threads; ++t) {
    readers.emplace_back([&, t] {
      struct alignas(64) Line {
        float values[16];
      };
      const std::vector<Line> memory(bytes / sizeof(Line), Line{});
      float total = sum(memory.front().values, floats);
      ready.arrive_and_wait();
      const auto start = Clock::now();
      for (int64_t round = 0; round < rounds; ++round) total += sum(memory.front().values, floats);
      rates[t] = total == 0 ? static_cast<double>(bytes * rounds) / NanosecondsSince(start) : 0;
    });
  }
  for (std::thread& reader : readers) reader.join();
  double all = 0;
  for (double rate : rates) all += rate;
  return all;
}

namespace {

void KeepTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

std::optional<double> LineRoundTripNanoseconds() {
  constexpr int kSamples = 9, kTrips = 200;
  const std::vector<int> cpus = cpu::AffinityMask();
  if (cpus.size() < 2) return std::nullopt;
  struct alignas(128) Line {
    std::atomic<int> value = 0;
  } line;
  const auto wait_for = [&](int value) {
    while (line.value.load(std::memory_order_acquire) != value) {
    }
  };
  std::vector<double> samples(kSamples);
  std::thread answers([&] {
    KeepTo(cpus[1]);
    for (int trip = 0; trip < (kSamples + 1) * kTrips; ++trip) {
      wait_for(2 * trip + 1);
      line.value.store(2 * trip + 2, std::memory_order_release);
    }
  });
  std::thread asks([&] {
    KeepTo(cpus[0]);
    for (int trip = 0, sample = -1; sample < kSamples; ++sample) {  // the first finds the other thread asleep
      const auto start = Clock::now();
      for (const int end = trip + kTrips; trip < end; ++trip) {
        line.value.store(2 * trip + 1, std::memory_order_release);
        wait_for(2 * trip + 2);
      }
      if (sample >= 0) samples[sample] = NanosecondsSince(start) / kTrips;
    }
  });
  asks.join();
  answers.join();
  std::ranges::sort(samples);
  return samples[kSamples / 2];
}

std::string RoundTripText() {
  const std::optional<double> nanoseconds = LineRoundTripNanoseconds();
  if (!nanoseconds) return "";
  return ", a line there and back " + std::to_string(static_cast<int64_t>(*nanoseconds)) + " ns";
}

}  // namespace swizzle::bench
#endif  // HWY_ONCE
