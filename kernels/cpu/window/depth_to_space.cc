#include "kernels/cpu/window/depth_to_space.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/window/space_bands.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/window/depth_to_space.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/window/window_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Four rows in turns.
void InterleaveFours(const float* const (&rows)[4], int64_t width, float* to) {
  const int64_t whole = width / kLanes * kLanes;
  for (int64_t x = 0; x < whole; x += kLanes) {
    hn::StoreInterleaved4(LoadAll(rows[0] + x), LoadAll(rows[1] + x), LoadAll(rows[2] + x), LoadAll(rows[3] + x),
                          FloatTag(), to + 4 * x);
  }
  for (int64_t x = whole; x < width; ++x) {
    for (int64_t i = 0; i < 4; ++i) to[4 * x + i] = rows[i][x];
  }
}

// Two rows in turns.
void InterleavePairs(const float* first, const float* second, int64_t width, float* to) {
  const int64_t whole = width / kLanes * kLanes;
  for (int64_t x = 0; x < whole; x += kLanes) {
    hn::StoreInterleaved2(LoadAll(first + x), LoadAll(second + x), FloatTag(), to + 2 * x);
  }
  for (int64_t x = whole; x < width; ++x) {
    to[2 * x] = first[x];
    to[2 * x + 1] = second[x];
  }
}

// `rows` rows of each place's plane, which plane_of(place) begins with, to rows * block of the output.
template <typename PlaneOf>
void Interleave(const SpaceBands& bands, int64_t rows, const PlaneOf& plane_of, float* to) {
  const int64_t block = bands.block, to_width = bands.width * block;
  for (int64_t y = 0; y < block; ++y) {
    if (block == 2) {
      const float *const first = plane_of(2 * y), *const second = plane_of(2 * y + 1);
      for (int64_t row = 0; row < rows; ++row) {
        InterleavePairs(first + row * bands.width, second + row * bands.width, bands.width,
                        to + (row * block + y) * to_width);
      }
      continue;
    }
    if (block == 4) {
      const float* const planes[4] = {plane_of(4 * y), plane_of(4 * y + 1), plane_of(4 * y + 2), plane_of(4 * y + 3)};
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = row * bands.width;
        InterleaveFours({planes[0] + at, planes[1] + at, planes[2] + at, planes[3] + at}, bands.width,
                        to + (row * block + y) * to_width);
      }
      continue;
    }
    for (int64_t x = 0; x < block; ++x) {
      const float* const from = plane_of(y * block + x);
      for (int64_t row = 0; row < rows; ++row) {
        float* const out = to + (row * block + y) * to_width + x;
        for (int64_t i = 0; i < bands.width; ++i) out[i * block] = from[row * bands.width + i];
      }
    }
  }
}

// Where kDirect, which is in kNchw, planes are read and written in place.
template <bool kDirect, typename T>
void Rearrange(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const SpaceBands bands(problem);
  const int64_t channels = problem.output.channels, places = bands.places();
  const bool places_first = problem.space_block().places_first;
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  const auto run = [&](int64_t slot, int64_t begin, int64_t end) {
    auto* const from = reinterpret_cast<float*>(args.workspace.data() + slot * bands.SlotBytes());
    float* const to = from + places * bands.from_floats;
    auto* const from_room = reinterpret_cast<Run*>(to + bands.to_floats);
    Run* const to_room = from_room + bands.from_runs();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t c = item % channels, band = item / channels % bands.bands, image = item / channels / bands.bands;
      const int64_t first = band * bands.rows * bands.width;
      const int64_t rows = std::min(bands.rows, problem.input.height - band * bands.rows), count = rows * bands.width;
      const std::span<const Run> from_runs(
          from_room, AppendRuns(problem.input, problem.from.layout, image, first, count, 0, from_room));
      const std::span<const Run> to_runs(
          to_room, AppendRuns(problem.output, problem.to.layout, image, first * places, count * places, 0, to_room));
      const auto plane_of = [&](int64_t place) -> const float* {
        const int64_t channel = places_first ? place * channels + c : c * places + place;
        if constexpr (kDirect) {
          return input + from_runs[0].At(channel);
        } else {
          float* const plane = from + place * bands.from_floats;
          Gather(from_runs, input, 0.0f, PlaneBatch{channel, 1, plane, 0});
          return plane;
        }
      };
      if constexpr (kDirect) {
        Interleave(bands, rows, plane_of, output + to_runs[0].At(c));
      } else {
        Interleave(bands, rows, plane_of, to);
        Scatter<false, T>(to_runs, PlaneBatch{c, 1, to, 0}, problem.epilogue, nullptr, output);
      }
    }
  };
  CpuStream::From(stream).ParallelRanges(problem.output.batch * bands.bands * channels, run);
}

}  // namespace

void DepthToSpace(const KernelArgs& args, Stream& stream) {
  const Storage& storage = args.problem->to;
  if (storage.layout == Layout::kNchw) return Rearrange<true, float>(args, stream);
  IsBfloat16(storage) ? Rearrange<false, Bfloat16>(args, stream) : Rearrange<false, float>(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

size_t DepthToSpaceWorkspaceBytes(const Problem& problem) { return SpaceBands(problem).SlotBytes() * problem.threads; }

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
