#include "kernels/cpu/int8/byte_cells.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/integers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8/byte_cells.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Loops that the compiler makes vectors of: exact on every machine, and short. What is fast is in byte_cells_vnni.cc.
HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = kMaxPanelWidth;

int8_t ByteAt(int32_t quad, int i) { return static_cast<int8_t>(static_cast<uint32_t>(quad) >> (8 * i)); }

// sums += weights of a quad times its four rows of bytes. Products of a byte and a signed one fit 16 bits.
void AddQuad(int32_t quad, const uint8_t* const (&rows)[4], int32_t* HWY_RESTRICT sums) {
  for (int i = 0; i < 4; ++i) {
    const int16_t weight = ByteAt(quad, i);
    const uint8_t* const row = rows[i];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<int16_t>(weight * static_cast<int16_t>(row[lane]));
    }
  }
}

// Rounds to the nearest, ties to even: numbers up to 2^22 lose what is behind the point beside 1.5 * 2^23.
int32_t RoundedStep(float value) {
  constexpr float kShift = 12582912.0f;
  const float held = std::min(std::max(value, -65536.0f), 65536.0f);
  return static_cast<int32_t>((held + kShift) - kShift);
}

void StoreBytes(const int32_t* HWY_RESTRICT sums, float scale, int64_t row, const PanelBytes& panel,
                const OutputSteps& steps) {
  uint8_t* HWY_RESTRICT to = panel.bytes + row * kLanes;
  float values[kLanes];
  if (panel.residual == nullptr) {
    for (int64_t lane = 0; lane < kLanes; ++lane) values[lane] = static_cast<float>(sums[lane]) * scale;
  } else {
    const uint8_t* const residual = panel.residual + row * kLanes;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = std::fma(static_cast<float>(sums[lane]), scale, steps.residual_offset);
      values[lane] = std::fma(static_cast<float>(residual[lane]), steps.residual_scale, value);
    }
  }
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const int32_t step = RoundedStep(values[lane]) + steps.zero_point;
    to[lane] = static_cast<uint8_t>(std::min(std::max(step, steps.low), steps.high));
  }
}

void StoreReals(const int32_t* sums, float scale, int64_t row, const RealUnits& reals, const OutputSteps& steps) {
  for (int unit = 0; unit < RealUnits::kUnits; ++unit) {
    if (reals.first[unit] == nullptr) continue;
    float* const to = reals.first[unit] + row * reals.stride[unit];
    for (int64_t lane = 0; lane < kPositionUnit; ++lane) {
      const float value = static_cast<float>(sums[unit * kPositionUnit + lane]) * scale;
      to[lane] = std::min(std::max(value, steps.real_low), steps.real_high);
    }
  }
}

void Store(const int32_t* sums, float scale, int64_t row, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.bytes != nullptr) return StoreBytes(sums, scale, row, panel, steps);
  StoreReals(sums, scale, row, *panel.reals, steps);
}

void Quads(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  const int32_t* weights = rows.weights;
  size_t entry = 0;
  size_t r = 0;
  const auto column = [&](size_t i) -> int64_t {
    return rows.far_columns == nullptr ? rows.near_offsets[i] / 8 : rows.far_columns[i];
  };
  for (const QuadGroup& group : rows.groups) {
    for (uint32_t in_group = 0; in_group < group.rows; ++in_group, ++r) {
      alignas(64) int32_t sums[kLanes];
      std::fill_n(sums, kLanes, rows.start[r]);
      for (uint32_t quad = 0; quad < group.quads; ++quad, entry += 4) {
        const uint8_t* const of[4] = {
            panel.columns + column(entry) * kLanes, panel.columns + column(entry + 1) * kLanes,
            panel.columns + column(entry + 2) * kLanes, panel.columns + column(entry + 3) * kLanes};
        AddQuad(*weights++, of, sums);
      }
      Store(sums, rows.scale[r], rows.rows[r], panel, steps);
    }
  }
}

// Nothing to gain here: rows stay as they are.
void Interleave(int64_t quads, const uint8_t* from, uint8_t* to) {
  if (from != to) std::memcpy(to, from, static_cast<size_t>(quads * 4 * kLanes));
}

void Blocks(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  for (int64_t r = 0; r < rows.rows; ++r) {
    const int64_t row = rows.first_row + r;
    const int32_t* const weights =
        rows.weights + r / BlockRows::kRows * rows.quads * BlockRows::kRows + r % BlockRows::kRows;
    alignas(64) int32_t sums[kLanes];
    std::fill_n(sums, kLanes, rows.start[row]);
    for (int64_t quad = 0; quad < rows.quads; ++quad) {
      const uint8_t* const first = panel.columns + quad * 4 * kLanes;
      AddQuad(weights[quad * BlockRows::kRows], {first, first + kLanes, first + 2 * kLanes, first + 3 * kLanes}, sums);
    }
    Store(sums, rows.scale[row], row, panel, steps);
  }
}

// Where a position of the first channel lies.
int64_t ByteOffset(const ByteSource& source, int64_t position) {
  if (!source.panels) return position;
  return position / kLanes * kLanes * source.channels + position % kLanes;
}

void Gather(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns) {
  uint8_t* to = columns.to;
  for (int32_t i = 0; i < window.kernel_h; ++i) {
    for (int32_t j = 0; j < window.kernel_w; ++j) {
      const int64_t tap = lanes.base + i * window.dilation_h * source.width + j * window.dilation_w;
      const uint64_t read = lanes.rows[i] & lanes.columns[j];
      int64_t offsets[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        offsets[lane] = read >> lane & 1 ? ByteOffset(source, tap + lanes.offset[lane]) : -1;
      }
      const uint8_t* from = source.data + columns.first_channel * source.channel_stride;
      for (int64_t channel = 0; channel < columns.channels; ++channel, to += kLanes, from += source.channel_stride) {
        for (int64_t lane = 0; lane < kLanes; ++lane) to[lane] = offsets[lane] < 0 ? columns.fill : from[offsets[lane]];
      }
    }
  }
}

void Depthwise(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps) {
  const int64_t row_quads = CeilDiv(taps.kernel_w, int64_t{4});
  const int32_t* weight = taps.weights;
  for (int64_t channel = 0; channel < taps.channels; ++channel) {
    alignas(64) int32_t sums[kLanes];
    std::fill_n(sums, kLanes, taps.start[channel]);
    for (int64_t quad = 0; quad < taps.kernel_h * row_quads; ++quad) {
      const int64_t first = quad / row_quads * taps.kernel_w;
      const auto row = [&](int64_t i) {  // the last tap again where there are no more: its weights are zero
        const int64_t tap = first + std::min(quad % row_quads * 4 + i, taps.kernel_w - 1);
        return taps.columns + (tap * taps.channels + channel) * kLanes;
      };
      AddQuad(*weight++, {row(0), row(1), row(2), row(3)}, sums);
    }
    Store(sums, taps.scale[channel], channel, panel, steps);
  }
}

void Products(const uint8_t* vectors, int64_t count, const int8_t* weights, int64_t cols, int32_t* sums) {
  for (int64_t i = 0; i < count; ++i, vectors += cols) {
    int32_t sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += vectors[c] * weights[c];
    sums[i] = sum;
  }
}

}  // namespace

const ByteCells kByteCells = {.quads = Quads,
                              .blocks = Blocks,
                              .interleave = Interleave,
                              .gather = Gather,
                              .depthwise = Depthwise,
                              .direct_depthwise = nullptr,
                              .products = Products,
                              .quantise = QuantiseRun,
                              .dequantise = DequantiseRun,
                              .add = AddRun,
                              .largest = LargestOfRows,
                              .sum = SumRun};

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
