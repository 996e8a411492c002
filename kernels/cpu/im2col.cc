#include "kernels/cpu/im2col.h"

#include <algorithm>
#include <cstring>

namespace swizzle::cpu {
namespace {

constexpr size_t RoundUp(size_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

}  // namespace

size_t PanelColumns::RunBytes(const Problem& problem) {
  return RoundUp(Taps(problem) * kMaxPanelWidth * sizeof(GatherRun));
}

size_t PanelColumns::CountBytes(const Problem& problem) { return RoundUp(Taps(problem) * sizeof(int32_t)); }

size_t PanelColumns::WorkspaceBytes(const Problem& problem, Layout layout, int64_t rows) {
  if (IsDirect(problem, layout)) return 0;
  return RunBytes(problem) + CountBytes(problem) + rows * kMaxPanelWidth * sizeof(float);
}

PanelColumns::PanelColumns(const Problem& problem, Layout layout, const float* input, std::span<std::byte> workspace)
    : problem_(problem),
      layout_(layout),
      input_(input),
      input_grid_(problem.input.positions()),
      output_grid_(problem.output.positions()),
      runs_(reinterpret_cast<GatherRun*>(workspace.data())),
      run_counts_(reinterpret_cast<int32_t*>(workspace.data() + RunBytes(problem))),
      columns_(reinterpret_cast<float*>(workspace.data() + RunBytes(problem) + CountBytes(problem))) {}

PanelColumns::Source PanelColumns::SourceOf(int64_t position, int32_t i, int32_t j) const {
  constexpr Source kOutside = {-1, 0};
  const Extent& in = problem_.input;
  const Extent& out = problem_.output;
  const Window& window = problem_.window;
  if (position >= out.positions()) return kOutside;
  const int64_t image = position / out.plane();
  const int64_t y = position % out.plane() / out.width * window.stride_h - window.pad_top + i * window.dilation_h;
  const int64_t x = position % out.width * window.stride_w - window.pad_left + j * window.dilation_w;
  if (y < 0 || y >= in.height || x < 0 || x >= in.width) return kOutside;
  const int64_t index = y * in.width + x;
  if (layout_ == Layout::kNchw) return {image * in.channels * in.plane() + index, in.plane()};
  const int64_t source = image * in.plane() + index;
  const int64_t panel = input_grid_.PanelOf(source);
  const int64_t begin = input_grid_.Begin(panel);
  return {begin * in.channels + source - begin, input_grid_.Width(panel)};
}

bool PanelColumns::Extend(GatherRun& run, const Source& source) {
  const bool both_outside = run.offset < 0 && source.offset < 0;
  if (!both_outside) {
    if (run.offset < 0 || source.offset < 0 || run.channel_stride != source.channel_stride) return false;
    const int64_t step = source.offset - (run.offset + int64_t{run.length - 1} * run.step);
    if (run.step == 0 ? step <= 0 || step > kMaxPanelWidth : step != run.step) return false;
    run.step = static_cast<int32_t>(step);
  }
  ++run.length;
  return true;
}

void PanelColumns::SetPanel(int64_t panel) {
  panel_ = panel;
  const int64_t begin = output_grid_.Begin(panel);
  const int64_t end = begin + output_grid_.Width(panel);
  for (int32_t tap = 0; tap < Taps(problem_); ++tap) {
    GatherRun* runs = runs_ + tap * kMaxPanelWidth;
    int32_t count = 0;
    for (int64_t position = begin; position < end; ++position) {
      const Source source = SourceOf(position, tap / problem_.window.kernel_w, tap % problem_.window.kernel_w);
      if (count > 0 && Extend(runs[count - 1], source)) continue;
      runs[count++] = {source.offset, source.channel_stride, 1, 0};
    }
    run_counts_[tap] = count;
  }
}

float* PanelColumns::CopyRun(const GatherRun& run, int64_t channel, const float* input, float* to) {
  if (run.offset < 0) return std::fill_n(to, run.length, 0.0f);
  const float* from = input + run.offset + channel * run.channel_stride;
  if (run.step <= 1) return std::copy_n(from, run.length, to);
  for (int32_t i = 0; i < run.length; ++i) to[i] = from[int64_t{i} * run.step];
  return to + run.length;
}

const float* PanelColumns::Rows(int64_t panel, int64_t begin, int64_t end) {
  if (IsDirect(problem_, layout_)) {
    return input_ + output_grid_.Begin(panel) * problem_.input.channels + begin * output_grid_.Width(panel);
  }
  if (panel != panel_) SetPanel(panel);
  const int64_t taps = Taps(problem_);
  float* to = columns_;
  for (int64_t k = begin; k < end; ++k) {
    const GatherRun* runs = runs_ + k % taps * kMaxPanelWidth;
    const int32_t count = run_counts_[k % taps];
    for (int32_t i = 0; i < count; ++i) to = CopyRun(runs[i], k / taps, input_, to);
  }
  return columns_;
}

}  // namespace swizzle::cpu
