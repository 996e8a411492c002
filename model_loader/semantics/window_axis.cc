#include "model_loader/semantics/window_axis.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "model_loader/semantics/axes.h"

namespace swizzle {

StatusOr<AutoPad> AutoPadOf(const Node& node) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, StringAttribute(node, "auto_pad", "NOTSET"));
  if (mode == "NOTSET") return AutoPad::kExplicit;
  if (mode == "VALID") return AutoPad::kValid;
  if (mode == "SAME_UPPER") return AutoPad::kSameUpper;
  if (mode == "SAME_LOWER") return AutoPad::kSameLower;
  return InvalidArgument(Describe(node), ": auto_pad '", mode, "' is not known");
}

bool WindowAxis::InRange() const {
  const auto within = [](int64_t x, int64_t least) { return x >= least && x <= kMaxWindowExtent; };
  return within(kernel, 1) && within(stride, 1) && within(dilation, 1) && within(before, 0) && within(after, 0);
}

bool WindowAxis::Touches(int64_t o) const {
  const int64_t start = o * stride - before;
  const int64_t first = start >= 0 ? 0 : CeilDiv(-start, dilation);
  return first < kernel && start + first * dilation < input;
}

bool WindowAxis::AllTouch() const {
  for (int64_t o = 0; o < Output(); ++o) {
    if (!Touches(o)) return false;
  }
  return true;
}

bool WindowAxis::HasCutWindow() const {
  return Room() >= 0 && Room() % stride != 0 && (Room() / stride + 1) * stride - before < input;
}

bool WindowAxis::PadForCutWindow() {
  if (!HasCutWindow()) return false;
  after += stride - Room() % stride;
  return true;
}

void WindowAxis::SplitPadding(int64_t total, AutoPad mode) {
  before = mode == AutoPad::kSameLower ? total - total / 2 : total / 2;
  after = total - before;
}

void WindowAxis::PadToSame(AutoPad mode) {
  const int64_t output = CeilDiv(input, stride);
  SplitPadding(std::max<int64_t>(0, (output - 1) * stride + Reach() - input), mode);
}

WindowAxis VerticalAxis(const Window& w, int64_t height) {
  return {height, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom};
}

WindowAxis HorizontalAxis(const Window& w, int64_t width) {
  return {width, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right};
}

StatusOr<std::vector<int64_t>> PadsOfAll(const std::vector<int64_t>& given, const std::vector<int64_t>& axes,
                                         int64_t rank) {
  if (given.size() != 2 * axes.size()) {
    return InvalidArgument(given.size(), " amounts of padding for ", axes.size(),
                           " dimensions; there must be two each");
  }
  std::vector<int64_t> all(2 * static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, NormalAxis(axes[i], rank));
    all[static_cast<size_t>(axis)] = given[i];
    all[static_cast<size_t>(axis + rank)] = given[i + axes.size()];
  }
  return all;
}

}  // namespace swizzle
