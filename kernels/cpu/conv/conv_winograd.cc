#include "kernels/cpu/conv/conv_winograd.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/winograd_tiles.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/layout/slab.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_winograd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// A tile of products: its sums, weights and an input fill the registers.
#if HWY_TARGET == HWY_AVX3
constexpr int kRowsAtOnce = 12;
#else
constexpr int kRowsAtOnce = 4;
#endif
constexpr int kVectorsAtOnce = 2;
constexpr int64_t kWidthAtOnce = kVectorsAtOnce * kLanes;

constexpr float kNearSquare = kNearPoint * kNearPoint, kFarSquare = kFarPoint * kFarPoint;

// Along one direction, six numbers to six.
HWY_INLINE void TransformInputs(const FloatVector* from, FloatVector* to, int64_t step) {
  const FloatTag d;
  const FloatVector near_point = hn::Set(d, kNearPoint), far_point = hn::Set(d, kFarPoint);
  const FloatVector near_square = hn::Set(d, kNearSquare), far_square = hn::Set(d, kFarSquare);
  const FloatVector sum = hn::Set(d, kNearSquare + kFarSquare), product = hn::Set(d, kNearSquare * kFarSquare);
  const FloatVector near_even = hn::NegMulAdd(far_square, from[2], from[4]);
  const FloatVector near_odd = hn::NegMulAdd(far_square, from[1], from[3]);
  const FloatVector far_even = hn::NegMulAdd(near_square, from[2], from[4]);
  const FloatVector far_odd = hn::NegMulAdd(near_square, from[1], from[3]);
  to[0 * step] = hn::NegMulAdd(sum, from[2], hn::MulAdd(product, from[0], from[4]));
  to[1 * step] = hn::MulAdd(near_point, near_odd, near_even);
  to[2 * step] = hn::NegMulAdd(near_point, near_odd, near_even);
  to[3 * step] = hn::MulAdd(far_point, far_odd, far_even);
  to[4 * step] = hn::NegMulAdd(far_point, far_odd, far_even);
  to[5 * step] = hn::NegMulAdd(sum, from[3], hn::MulAdd(product, from[1], from[5]));
}

// Likewise six numbers to four.
HWY_INLINE void TransformOutputs(const FloatVector* from, FloatVector* to, int64_t step) {
  const FloatTag d;
  const FloatVector near_even = hn::Add(from[1], from[2]), near_odd = hn::Sub(from[1], from[2]);
  const FloatVector far_even = hn::Add(from[3], from[4]), far_odd = hn::Sub(from[3], from[4]);
  to[0 * step] = hn::Add(hn::Add(from[0], near_even), far_even);
  to[1 * step] = hn::MulAdd(hn::Set(d, kFarPoint), far_odd, hn::Mul(hn::Set(d, kNearPoint), near_odd));
  to[2 * step] = hn::MulAdd(hn::Set(d, kFarSquare), far_even, hn::Mul(hn::Set(d, kNearSquare), near_even));
  to[3 * step] = hn::MulAdd(hn::Set(d, kFarSquare * kFarPoint), far_odd,
                            hn::MulAdd(hn::Set(d, kNearSquare * kNearPoint), near_odd, from[5]));
}

// Of an image: a group of tiles, and the groups of outputs that they are computed for.
struct Item {
  int64_t image, first_tile, tiles;
  int64_t first_outputs, last_outputs;
};

class Layer {
 public:
  explicit Layer(const KernelArgs& args)
      : args_(args),
        problem_(*args.problem),
        weight_(static_cast<const WinogradWeight&>(*args.weight)),
        tiles_(problem_) {}

  int64_t items() const { return problem_.output.batch * tiles_.groups * tiles_.parts; }

  void Run(int64_t slot, int64_t index) const {
    const int64_t part = index % tiles_.parts, group = index / tiles_.parts % tiles_.groups;
    const int64_t first = tiles_.FirstTile(group);
    const Item item = {index / tiles_.parts / tiles_.groups, first, tiles_.FirstTile(group + 1) - first,
                       tiles_.output_groups * part / tiles_.parts, tiles_.output_groups * (part + 1) / tiles_.parts};
    float* const inputs = reinterpret_cast<float*>(args_.workspace.data()) + slot * tiles_.slot_floats;
    float* const sums = inputs + kTileNumbers * tiles_.in_stride;
    for (int64_t channel = 0; channel < tiles_.in_channels; channel += kBlockChannels) {
      for (int64_t i = 0; i < item.tiles; ++i) TakeInputs(item, i, channel, inputs);
    }
    for (int64_t outputs = item.first_outputs; outputs < item.last_outputs; ++outputs) {
      Multiply(item, outputs, inputs, sums);
      for (int64_t first_output = 0; first_output < weight_.GroupWidth(outputs); first_output += kBlockChannels) {
        for (int64_t i = 0; i < item.tiles; ++i) GiveOutputs(item, i, outputs, first_output, sums);
        if (problem_.epilogue.function) EndRows(item, outputs, first_output);
      }
    }
  }

 private:
  struct Corner {
    int64_t y, x;  // of the output
  };
  Corner CornerOf(const Item& item, int64_t i) const {
    const int64_t tile = item.first_tile + i;
    return {tile / tiles_.columns * kTileOutputs, tile % tiles_.columns * kTileOutputs};
  }

  // The numbers of a block of channels of the group's tile i.
  void TakeInputs(const Item& item, int64_t i, int64_t channel, float* inputs) const {
    const Extent& in = problem_.input;
    const Corner corner = CornerOf(item, i);
    const int64_t top = corner.y - problem_.window().pad_top, left = corner.x - problem_.window().pad_left;
    const float* const plane = args_.Input<float>(0) + (item.image * tiles_.in_channels + channel) * in.plane();
    float* const to = inputs + i * tiles_.in_channels + channel;
    const bool inside = top >= 0 && left >= 0 && top + kTileInputs <= in.height && left + kTileInputs <= in.width;
    for (int64_t lane = 0; lane < kBlockChannels; lane += kLanes) {
      const float* const from = plane + (top * in.width + left) * kBlockChannels + lane;
      if (inside) {
        TakeTile([&](int64_t y, int64_t x)
                     HWY_ATTR { return hn::LoadU(FloatTag(), from + (y * in.width + x) * kBlockChannels); },
                 to + lane);
      } else {
        TakeTile(
            [&](int64_t y, int64_t x) HWY_ATTR {
              const bool is_there = top + y >= 0 && top + y < in.height && left + x >= 0 && left + x < in.width;
              return is_there ? hn::LoadU(FloatTag(), from + (y * in.width + x) * kBlockChannels)
                              : hn::Zero(FloatTag());
            },
            to + lane);
      }
    }
  }

  template <typename Load>
  HWY_INLINE void TakeTile(const Load& load, float* to) const {
    FloatVector columns[kTileNumbers];  // transformed along columns
    for (int64_t x = 0; x < kTileInputs; ++x) {
      FloatVector column[kTileInputs];
      SWIZZLE_UNROLL
      for (int64_t y = 0; y < kTileInputs; ++y) column[y] = load(y, x);
      TransformInputs(column, columns + x, kTileInputs);
    }
    for (int64_t y = 0; y < kTileInputs; ++y) {
      FloatVector row[kTileInputs];
      TransformInputs(columns + y * kTileInputs, row, 1);
      SWIZZLE_UNROLL
      for (int64_t x = 0; x < kTileInputs; ++x) {
        hn::StoreU(row[x], FloatTag(), to + (y * kTileInputs + x) * tiles_.in_stride);
      }
    }
  }

  // kRows tiles by kVectors vectors of outputs: sums of inputs times weights.
  template <int kRows, int kVectors>
  HWY_INLINE void MultiplyTile(const float* inputs, const float* weights, int64_t width, float* sums) const {
    const FloatTag d;
    const int64_t channels = problem_.input.channels, stride = tiles_.in_channels;
    FloatVector tile[kRows][kVectors];
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) tile[r][j] = hn::Zero(d);
    }
    for (int64_t c = 0; c < channels; ++c) {
      FloatVector column[kVectors];
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) column[j] = hn::LoadU(d, weights + c * width + j * kLanes);
      SWIZZLE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const FloatVector input = hn::Set(d, inputs[r * stride + c]);
        SWIZZLE_UNROLL
        for (int j = 0; j < kVectors; ++j) tile[r][j] = hn::MulAdd(input, column[j], tile[r][j]);
      }
    }
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) hn::StoreU(tile[r][j], d, sums + r * kOutputGroup + j * kLanes);
    }
  }

  // All tiles by kVectors vectors, in steps of kRows, then of fewer.
  template <int kVectors, int kRows = kRowsAtOnce>
  void MultiplyRows(const float* inputs, const float* weights, int64_t width, int64_t rows, float* sums) const {
    for (; rows >= kRows; rows -= kRows) {
      MultiplyTile<kRows, kVectors>(inputs, weights, width, sums);
      inputs += kRows * tiles_.in_channels;
      sums += kRows * kOutputGroup;
    }
    if constexpr (kRows > 1) {
      if (rows > 0) MultiplyRows<kVectors, kRows / 2>(inputs, weights, width, rows, sums);
    }
  }

  void Multiply(const Item& item, int64_t outputs, const float* inputs, float* sums) const {
    const int64_t width = weight_.GroupWidth(outputs);
    for (int64_t number = 0; number < kTileNumbers; ++number) {
      const float* const in = inputs + number * tiles_.in_stride;
      const float* const weights = weight_.weights(outputs) + number * problem_.input.channels * width;
      float* const out = sums + number * tiles_.out_stride;
      int64_t first = 0;
      for (; first + kWidthAtOnce <= width; first += kWidthAtOnce) {
        MultiplyRows<kVectorsAtOnce>(in, weights + first, width, item.tiles, out + first);
      }
      for (; first < width; first += kLanes) MultiplyRows<1>(in, weights + first, width, item.tiles, out + first);
    }
  }

  int64_t OutputOffset(const Item& item, int64_t outputs, int64_t first_output) const {
    const int64_t channels = RoundUp(problem_.output.channels, kBlockChannels);
    return (item.image * channels + outputs * kOutputGroup + first_output) * problem_.output.plane();
  }

  // A block of outputs of the group's tile i, all but the epilogue's function.
  void GiveOutputs(const Item& item, int64_t i, int64_t outputs, int64_t first_output, const float* sums) const {
    const FloatTag d;
    const Extent& out = problem_.output;
    const Corner corner = CornerOf(item, i);
    const int64_t offset =
        OutputOffset(item, outputs, first_output) + (corner.y * out.width + corner.x) * kBlockChannels;
    const int64_t rows = std::min(kTileOutputs, out.height - corner.y);
    const int64_t columns = std::min(kTileOutputs, out.width - corner.x);
    const float* const residual = args_.Residual<float>();
    const FloatVector low = hn::Set(d, problem_.epilogue.low), high = hn::Set(d, problem_.epilogue.high);
    for (int64_t lane = 0; lane < kBlockChannels; lane += kLanes) {
      const float* const from = sums + i * kOutputGroup + first_output + lane;
      const FloatVector bias = hn::LoadU(d, weight_.bias(outputs) + first_output + lane);
      FloatVector lines[kTileOutputs * kTileInputs];  // transformed along columns
      for (int64_t x = 0; x < kTileInputs; ++x) {
        FloatVector column[kTileInputs];
        SWIZZLE_UNROLL
        for (int64_t y = 0; y < kTileInputs; ++y) {
          column[y] = hn::LoadU(d, from + (y * kTileInputs + x) * tiles_.out_stride);
        }
        TransformOutputs(column, lines + x, kTileInputs);
      }
      for (int64_t y = 0; y < rows; ++y) {
        FloatVector line[kTileOutputs];
        TransformOutputs(lines + y * kTileInputs, line, 1);
        const int64_t at = offset + y * out.width * kBlockChannels + lane;
        for (int64_t x = 0; x < columns; ++x) {
          FloatVector result = hn::Add(line[x], bias);
          if (residual != nullptr) result = hn::Add(result, hn::LoadU(d, residual + at + x * kBlockChannels));
          hn::StoreU(Clamp(result, low, high), d, args_.Output<float>() + at + x * kBlockChannels);
        }
      }
    }
  }

  // The epilogue's function, along what the group has of each row.
  void EndRows(const Item& item, int64_t outputs, int64_t first_output) const {
    const Extent& out = problem_.output;
    float* const plane = args_.Output<float>() + OutputOffset(item, outputs, first_output);
    for (int64_t i = 0; i < item.tiles;) {
      const Corner corner = CornerOf(item, i);
      const int64_t tiles = std::min(item.tiles - i, tiles_.columns - corner.x / kTileOutputs);
      const int64_t end = std::min(corner.x + tiles * kTileOutputs, out.width);
      for (int64_t y = corner.y; y < std::min(corner.y + kTileOutputs, out.height); ++y) {
        ApplyFunction(*problem_.epilogue.function, plane + (y * out.width + corner.x) * kBlockChannels,
                      (end - corner.x) * kBlockChannels);
      }
      i += tiles;
    }
  }

  const KernelArgs& args_;
  const Problem& problem_;
  const WinogradWeight& weight_;
  const WinogradTiles tiles_;
};

}  // namespace

void ConvWinograd(const KernelArgs& args, Stream& stream) {
  const Layer layer(args);
  CpuStream::From(stream).ParallelRanges(layer.items(), [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) layer.Run(slot, index);
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsConvWinograd(const Problem& problem) {
  constexpr int64_t kMostBytes = int64_t{5} << 20;
  const Window& window = problem.window();
  return window.kernel_h == 3 && window.kernel_w == 3 && window.stride_h == 1 && window.stride_w == 1 &&
         window.dilation_h == 1 && window.dilation_w == 1 && EpilogueKeepsZero(problem) &&
         WinogradWeightBytes(problem.input.channels, problem.output.channels) <= kMostBytes;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvWinograd(const Weight& weight, const Problem&) {
  return WinogradWeight::Make(weight.ToDense(), weight.bias);
}

size_t ConvWinogradWorkspaceBytes(const Problem& problem) {
  return static_cast<size_t>(WinogradTiles(problem).slot_floats * problem.threads) * sizeof(float);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
