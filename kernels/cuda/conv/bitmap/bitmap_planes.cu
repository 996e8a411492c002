#include <utility>

#include "kernels/base/integers.h"
#include "kernels/base/layout.h"
#include "kernels/cuda/conv/bitmap/bitmap_planes.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/launch_grid.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256, kWarp = 32, kWarps = kThreads / kWarp;
constexpr int kLines = 4;  // of a warp, whose loads overlap
constexpr uint32_t kAll = 0xFFFFFFFFu;

struct Planes {
  int32_t images, height, width, phases, row_words;
  int32_t lines;   // channels * images * height * phases
  int64_t stride;  // of rows of the input
  FastDivider by_phases, by_rows_of_channel;
};

// A warp takes some lines, which are phases of rows of planes. Of a line the values begin at 32 times its first word.
__global__ void __launch_bounds__(kThreads)
    EncodePlanes(const __grid_constant__ Planes planes, const uint16_t* input, uint32_t* bits, uint16_t* values) {
  const int first_line = (static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarp) * kLines;
  const int lane = threadIdx.x % kWarp;
  const uint16_t* from[kLines];
  int phases[kLines];
  int64_t to[kLines];
#pragma unroll
  for (int i = 0; i < kLines; ++i) {
    const int line = min(first_line + i, planes.lines - 1);
    uint32_t row = line;
    phases[i] = static_cast<int>(planes.by_phases.Split(row));
    uint32_t channel = row;
    const uint32_t in_channel = planes.by_rows_of_channel.Split(channel);
    from[i] = input + channel * planes.stride + int64_t{in_channel} * planes.width;
    to[i] = int64_t{line} * planes.row_words * kStripLanes;
  }
  for (int word = 0; word < planes.row_words; ++word) {
    uint16_t value[kLines];
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      const int x = phases[i] + (word * kStripLanes + lane) * planes.phases;
      value[i] = x < planes.width ? __ldg(from[i] + x) : uint16_t{0};
    }
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      if (first_line + i >= planes.lines) break;
      const bool holds = (value[i] & 0x7FFF) != 0;
      const uint32_t held = __ballot_sync(kAll, holds);
      if (holds) values[to[i] + __popc(held & ((1u << lane) - 1))] = value[i];
      if (lane == 0) bits[int64_t{first_line + i} * planes.row_words + word] = held;
      to[i] += __popc(held);
    }
  }
}

struct Unfolding {
  Planes planes;
  Window window;
  int32_t out_width, out_height, cols, depth;
  uint32_t blocks;  // of a strip
  FastDivider by_taps, by_kernel_w, by_row_strips, by_out_height;
};

// The word of a row's bits from bit `begin` on, which may lie before it; `before` is increased by what precedes it.
__device__ uint32_t BitsFrom(const uint32_t* bits, int words, int begin, uint32_t& before) {
  const int word = begin >> 5, shift = begin & 31;
  const auto at = [&](int i) { return i >= 0 && i < words ? __ldg(bits + i) : 0u; };
  for (int i = 0; i < min(word, words); ++i) before += __popc(__ldg(bits + i));
  const uint32_t low = at(word);
  before += __popc(low & ((1u << shift) - 1));
  return __funnelshift_r(low, at(word + 1), shift);
}

// A thread takes a word: neighbouring threads neighbouring k of a strip.
__global__ void __launch_bounds__(kThreads) Unfold(const __grid_constant__ Unfolding unfolding, const uint32_t* bits,
                                                   BitmapWord* words, uint32_t* alive, StripPlace* places) {
  const Planes& planes = unfolding.planes;
  const Window& window = unfolding.window;
  const int k = static_cast<int>(blockIdx.x % unfolding.blocks * kThreads + threadIdx.x);
  if (k >= unfolding.depth) return;  // whole warps: depths are multiples of 32
  const uint32_t strip = blockIdx.x / unfolding.blocks;
  BitmapWord word = {};
  uint32_t row = strip;
  const auto segment = static_cast<int>(unfolding.by_row_strips.Split(row));
  uint32_t image = row;
  const auto out_y = static_cast<int>(unfolding.by_out_height.Split(image));
  const bool is_there = image < static_cast<uint32_t>(planes.images);
  const int count = min(kStripLanes, unfolding.out_width - segment * kStripLanes);
  if (k == 0) {
    const auto line = static_cast<int>(image * unfolding.out_height) + out_y;
    places[strip] = {is_there ? line * unfolding.out_width + segment * kStripLanes : 0, is_there ? count : 0};
  }
  if (k < unfolding.cols && is_there) {
    uint32_t channel = k;
    uint32_t i = unfolding.by_taps.Split(channel);
    const auto j = static_cast<int>(unfolding.by_kernel_w.Split(i));
    const int y = out_y * window.stride_h - window.pad_top + static_cast<int>(i) * window.dilation_h;
    // Output column x reads input column (x + shift) * stride + phase.
    const int offset = j * window.dilation_w - window.pad_left;
    const int shift = offset >= 0 ? offset / planes.phases : -((planes.phases - 1 - offset) / planes.phases);
    const int phase = offset - shift * planes.phases;
    if (y >= 0 && y < planes.height) {
      const int64_t line = ((int64_t{channel} * planes.images + image) * planes.height + y) * planes.phases + phase;
      const int64_t first_word = line * planes.row_words;
      uint32_t before = static_cast<uint32_t>(first_word * kStripLanes);
      word.bits = BitsFrom(bits + first_word, planes.row_words, segment * kStripLanes + shift, before);
      if (count < kStripLanes) word.bits &= (1u << count) - 1;
      word.first = before;
    }
  }
  const int64_t at = int64_t{strip} * unfolding.depth + k;
  words[at] = word;
  const uint32_t held = __ballot_sync(kAll, word.bits != 0);
  if (threadIdx.x % kWarp == 0) alive[at / kWarp] = held;
}

}  // namespace

BitmapPlanes::Sizes::Sizes(const Problem& problem) {
  const Extent &in = problem.input, &out = problem.output;
  const int64_t phases = problem.window().stride_w;
  row_words = CeilDiv(CeilDiv(in.width, phases), int64_t{kStripLanes});
  row_strips = CeilDiv(out.width, int64_t{kStripLanes});
  strips = RoundUp(out.batch * out.height * row_strips, kStripsUnit);
  depth = RoundUp(in.channels * problem.window().taps(), kStripDepthUnit);
  words = static_cast<size_t>(in.channels * in.batch * in.height * phases * row_words);
  unfolded = static_cast<size_t>(strips * depth);
}

size_t BitmapPlanes::Sizes::bytes() const {
  return unfolded * sizeof(BitmapWord) + strips * sizeof(StripPlace) + (unfolded / 32 + words) * sizeof(uint32_t) +
         (words * kStripLanes + kValuesAhead) * sizeof(uint16_t);
}

size_t BitmapPlanes::Bytes(const Problem& problem) { return Sizes(problem).bytes(); }

BitmapPlanes::BitmapPlanes(std::byte* memory, const Problem& problem, int64_t stride)
    : stride_(stride), window_(problem.window()) {
  const Sizes sizes(problem);
  const Extent &in = problem.input, &out = problem.output;
  channels_ = static_cast<int32_t>(in.channels);
  images_ = static_cast<int32_t>(in.batch);
  height_ = static_cast<int32_t>(in.height);
  width_ = static_cast<int32_t>(in.width);
  out_height_ = static_cast<int32_t>(out.height);
  out_width_ = static_cast<int32_t>(out.width);
  row_strips_ = static_cast<int32_t>(sizes.row_strips);
  row_words_ = static_cast<int32_t>(sizes.row_words);
  strips_ = static_cast<int32_t>(sizes.strips);
  depth_ = static_cast<int32_t>(sizes.depth);
  words_ = reinterpret_cast<BitmapWord*>(memory);
  places_ = reinterpret_cast<StripPlace*>(words_ + sizes.unfolded);
  alive_ = reinterpret_cast<uint32_t*>(places_ + sizes.strips);
  bits_ = alive_ + sizes.unfolded / 32;
  values_ = reinterpret_cast<uint16_t*>(bits_ + sizes.words);
}

StatusOr<std::unique_ptr<BitmapPlanes>> BitmapPlanes::Make(const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(auto memory, DeviceArray<std::byte>::Allocate(Bytes(problem)));
  auto planes = std::make_unique<BitmapPlanes>(memory.data(), problem, RowStride(problem.input.positions()));
  planes->owned_ = std::move(memory);
  return planes;
}

void BitmapPlanes::QueueEncode(const void* input, cudaStream_t queue) {
  const int64_t lines = int64_t{channels_} * images_ * height_ * window_.stride_w;
  if (lines == 0) return;
  const Planes planes = {images_,
                         height_,
                         width_,
                         window_.stride_w,
                         row_words_,
                         static_cast<int32_t>(lines),
                         stride_,
                         FastDivider(window_.stride_w),
                         FastDivider(int64_t{images_} * height_)};
  EncodePlanes<<<LaunchGrid(CeilDiv(lines, kWarps * kLines)), kThreads, 0, queue>>>(
      planes, static_cast<const uint16_t*>(input), bits_, values_);
}

void BitmapPlanes::QueueUnfold(cudaStream_t queue) {
  if (strips_ == 0 || depth_ == 0) return;
  const auto blocks = static_cast<uint32_t>(CeilDiv(depth_, kThreads));
  const Unfolding unfolding = {.planes = {images_, height_, width_, window_.stride_w, row_words_, 0, stride_, {}, {}},
                               .window = window_,
                               .out_width = out_width_,
                               .out_height = out_height_,
                               .cols = static_cast<int32_t>(channels_ * window_.taps()),
                               .depth = depth_,
                               .blocks = blocks,
                               .by_taps = FastDivider(window_.taps()),
                               .by_kernel_w = FastDivider(window_.kernel_w),
                               .by_row_strips = FastDivider(row_strips_),
                               .by_out_height = FastDivider(out_height_)};
  Unfold<<<LaunchGrid(int64_t{strips_} * blocks), kThreads, 0, queue>>>(unfolding, bits_, words_, alive_, places_);
}

BitmapView BitmapPlanes::columns() const { return {words_, alive_, values_, places_, strips_, depth_}; }

}  // namespace swizzle::cuda
