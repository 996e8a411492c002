#include "kernels/operator/count_zeros.h"

#include <algorithm>
#include <cmath>

namespace swizzle {
namespace {

double Share(int64_t part, int64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

// Of what is left once a share is known to be empty.
double ShareOfRest(double all, double known) { return known >= 1.0 ? 0.0 : (all - known) / (1.0 - known); }

class Random {
 public:
  double Next() {  // in [0, 1)
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) * 0x1p-24;
  }

 private:
  uint64_t state_ = 0x9e3779b97f4a7c15u;
};

// At least one of `count` bits, and `density` of them on average.
uint32_t DrawHeld(double density, int count, Random& random) {
  int wanted = std::clamp(static_cast<int>(density * count + random.Next()), 1, count);
  uint32_t held = 0;
  for (int i = 0; wanted > 0; ++i) {
    if (random.Next() * (count - i) >= wanted) continue;
    held |= uint32_t{1} << i;
    --wanted;
  }
  return held;
}

}  // namespace

Status Validate(const InputZeros& zeros) {
  double least = 0.0;
  for (const double share : {zeros.channels, zeros.planes, zeros.runs, zeros.elements}) {
    if (!(share >= least && share <= 1.0)) {
      return InvalidArgument("its shares of empty channels, planes and runs and of zeros, ", zeros.channels, ", ",
                             zeros.planes, ", ", zeros.runs, " and ", zeros.elements, ", do not rise from 0 to 1");
    }
    least = share;
  }
  return {};
}

std::string ZerosText(const InputZeros& zeros) {
  const auto text = [](double share) { return std::lround(share * 1e4); };
  return Concat("zeros ", text(zeros.elements), " ", text(zeros.runs), " ", text(zeros.planes), " ",
                text(zeros.channels));
}

void ZerosCount::Add(std::span<const float> row) {
  ++rows_;
  const float* line = row.data();
  for (int64_t channel = 0; channel < value_.channels; ++channel) {
    bool plane_is_empty = true;
    for (int64_t y = 0; y < value_.height; ++y, line += value_.width) {
      for (int64_t x = 0; x < value_.width; x += InputZeros::kRun) {
        const int64_t count = std::min<int64_t>(InputZeros::kRun, value_.width - x);
        const auto zeros = std::count(line + x, line + x + count, 0.0f);
        ++all_runs_;
        elements_ += zeros;
        runs_ += zeros == count;
        plane_is_empty &= zeros == count;
      }
    }
    planes_ += plane_is_empty;
    if (!plane_is_empty) filled_[channel] = true;
  }
}

InputZeros ZerosCount::Shares() const {
  const auto empty = std::ranges::count(filled_, false);
  return {Share(empty, value_.channels), Share(planes_, rows_ * value_.channels), Share(runs_, all_runs_),
          Share(elements_, rows_ * value_.channels * value_.plane())};
}

void DrawZeros(const InputZeros& zeros, const Extent& extent, absl::FunctionRef<void(const DrawnRun&)> visit) {
  Random random;
  const double planes = ShareOfRest(zeros.planes, zeros.channels), runs = ShareOfRest(zeros.runs, zeros.planes);
  const double density = 1.0 - ShareOfRest(zeros.elements, zeros.runs);
  auto empty_left = static_cast<double>(std::lround(zeros.channels * static_cast<double>(extent.channels)));
  for (int64_t channel = 0; channel < extent.channels; ++channel) {
    const bool is_empty = random.Next() * static_cast<double>(extent.channels - channel) < empty_left;
    if (is_empty) empty_left -= 1.0;
    for (int64_t row = 0; row < extent.batch; ++row) {
      const bool plane_is_empty = is_empty || random.Next() < planes;
      for (int64_t position = 0; position < extent.plane();) {
        const int64_t left = extent.width - position % extent.width;
        const int count = static_cast<int>(std::min<int64_t>(InputZeros::kRun, left));
        const bool run_is_empty = plane_is_empty || random.Next() < runs;
        visit({row, channel, position, count, run_is_empty ? 0 : DrawHeld(density, count, random)});
        position += count;
      }
    }
  }
}

}  // namespace swizzle
