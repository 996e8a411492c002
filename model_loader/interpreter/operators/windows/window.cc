#include "model_loader/interpreter/operators/windows/window.h"

#include <algorithm>

#include "model_loader/semantics/window_axis.h"

namespace swizzle::interpreter {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 30;  // so that no sum of products of two overflows

// An attribute with `length` entries from `low` up; all `absent` where it is left out.
StatusOr<Shape> Extents(const Call& call, const std::string& name, size_t length, int64_t low, int64_t absent) {
  SWIZZLE_ASSIGN_OR_RETURN(Shape values, call.Ints(name));
  if (values.empty()) values.assign(length, absent);
  const auto wrong = [&](int64_t value) { return value < low || value > kMaxExtent; };
  if (values.size() != length || std::any_of(values.begin(), values.end(), wrong)) {
    return InvalidArgument(name, " is ", ShapeText(values), "; it must be ", length, " numbers of at least ", low);
  }
  return values;
}

// What the attributes say, all but padding and sizes.
StatusOr<Window> ReadSteps(const Call& call, const Shape& input, const Shape& kernel) {
  if (input.size() < 3) return InvalidArgument("input 0 has shape ", ShapeText(input), "; it must be [N,C,...]");
  Window window;
  window.input.assign(input.begin() + 2, input.end());
  const size_t rank = window.input.size();
  SWIZZLE_ASSIGN_OR_RETURN(window.kernel, call.Ints("kernel_shape", kernel));
  const auto wrong = [](int64_t value) { return value < 1 || value > kMaxExtent; };
  if (window.kernel.size() != rank || std::any_of(window.kernel.begin(), window.kernel.end(), wrong) ||
      (!kernel.empty() && window.kernel != kernel)) {
    return InvalidArgument("kernel_shape ", ShapeText(window.kernel), " does not fit the inputs");
  }
  SWIZZLE_ASSIGN_OR_RETURN(window.strides, Extents(call, "strides", rank, 1, 1));
  SWIZZLE_ASSIGN_OR_RETURN(window.dilations, Extents(call, "dilations", rank, 1, 1));
  return window;
}

Status ReadPads(const Call& call, Window& window) {
  const size_t rank = window.input.size();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape pads, Extents(call, "pads", 2 * rank, 0, 0));
  window.pads_begin.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(rank));
  window.pads_end.assign(pads.begin() + static_cast<ptrdiff_t>(rank), pads.end());
  return {};
}

// Dimension `d`, with the padding that there is.
WindowAxis AxisOf(const Window& window, size_t d) {
  WindowAxis axis{window.input[d], window.kernel[d], window.strides[d], window.dilations[d]};
  if (d < window.pads_begin.size()) axis.before = window.pads_begin[d];
  if (d < window.pads_end.size()) axis.after = window.pads_end[d];
  return axis;
}

void SetPads(Window& window, size_t d, const WindowAxis& axis) {
  window.pads_begin.resize(window.kernel.size());
  window.pads_end.resize(window.kernel.size());
  window.pads_begin[d] = axis.before;
  window.pads_end[d] = axis.after;
}

bool IsSame(AutoPad mode) { return mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower; }

}  // namespace

bool Window::IsPointwise() const {
  const auto all = [](const Shape& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [value](int64_t entry) { return entry == value; });
  };
  return all(kernel, 1) && all(strides, 1) && all(pads_begin, 0) && all(pads_end, 0);
}

StatusOr<Window> ReadWindow(Call& call, const Shape& input, const Shape& kernel) {
  SWIZZLE_ASSIGN_OR_RETURN(Window window, ReadSteps(call, input, kernel));
  SWIZZLE_ASSIGN_OR_RETURN(const AutoPad mode, AutoPadOf(call.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t ceil, call.Int("ceil_mode", 0));
  if (mode == AutoPad::kExplicit) SWIZZLE_RETURN_IF_ERROR(ReadPads(call, window));
  for (size_t d = 0; d < window.input.size(); ++d) {
    WindowAxis axis = AxisOf(window, d);
    if (IsSame(mode)) axis.PadToSame(mode);
    SetPads(window, d, axis);
    if (axis.Room() < 0) {
      return InvalidArgument("a window of ", axis.Reach(), " does not fit into ", axis.input, " and the padding");
    }
    window.output.push_back(axis.Output() + (ceil != 0 && axis.HasCutWindow() ? 1 : 0));
  }
  Shape taps = window.kernel;
  taps.insert(taps.end(), window.output.begin(), window.output.end());
  SWIZZLE_RETURN_IF_ERROR(ElementCount(taps));
  return window;
}

StatusOr<Window> ReadTransposedWindow(Call& call, const Shape& input, const Shape& kernel) {
  SWIZZLE_ASSIGN_OR_RETURN(Window window, ReadSteps(call, input, kernel));
  const size_t rank = window.input.size();
  window.output = std::move(window.input);
  window.input.assign(rank, 0);
  SWIZZLE_ASSIGN_OR_RETURN(const AutoPad mode, AutoPadOf(call.node()));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape extra, Extents(call, "output_padding", rank, 0, 0));
  SWIZZLE_ASSIGN_OR_RETURN(Shape wanted, call.Ints("output_shape"));
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  const auto wrong = [](int64_t size) { return size < 0 || size > kMaxExtent; };
  if (!wanted.empty() && (wanted.size() != rank || std::any_of(wanted.begin(), wanted.end(), wrong))) {
    return InvalidArgument("output_shape is ", ShapeText(wanted), "; it must be ", rank, " sizes");
  }
  const bool derived = IsSame(mode) || !wanted.empty();
  if (!derived && mode == AutoPad::kExplicit) SWIZZLE_RETURN_IF_ERROR(ReadPads(call, window));
  for (size_t d = 0; d < rank; ++d) {
    WindowAxis axis = AxisOf(window, d);
    const int64_t full = axis.stride * (window.output[d] - 1) + extra[d] + axis.Reach();
    const int64_t size = !wanted.empty() ? wanted[d] : std::min(window.output[d] * axis.stride, full);
    if (derived) {
      const AutoPad odd = mode == AutoPad::kSameUpper ? mode : AutoPad::kSameLower;
      axis.SplitPadding(std::clamp<int64_t>(full - size, 0, kMaxExtent), odd);
    }
    SetPads(window, d, axis);
    window.input[d] = derived ? size : full - axis.before - axis.after;
    if (window.input[d] < 0 || window.input[d] > kMaxExtent) {
      return InvalidArgument("the output's dimension ", d + 2, " would be ", window.input[d]);
    }
  }
  SWIZZLE_RETURN_IF_ERROR(call.New(DType::kFloat32, window.input));  // within the limits
  return window;
}

StatusOr<Array> Taps(Call& call, const Window& window) {
  const size_t rank = window.kernel.size();
  SWIZZLE_ASSIGN_OR_RETURN(Array taps, call.NewTable(DType::kInt32, {window.taps(), window.positions()}));
  if (taps.elements() == 0) return taps;
  int32_t* to = taps.Mutable<int32_t>().data();
  std::vector<int64_t> tap(rank, 0), at(rank, 0);
  const auto advance = [rank](std::vector<int64_t>& index, const Shape& bounds) {
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < bounds[d]) return true;
      index[d] = 0;
    }
    return false;
  };
  do {
    do {
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t place = at[d] * window.strides[d] - window.pads_begin[d] + tap[d] * window.dilations[d];
        inside &= place >= 0 && place < window.input[d];
        offset = offset * window.input[d] + place;
      }
      *to++ = inside ? static_cast<int32_t>(offset) : -1;
    } while (advance(at, window.output));
  } while (advance(tap, window.kernel));
  return taps;
}

}  // namespace swizzle::interpreter
