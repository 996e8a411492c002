#include "model_loader/semantics/windows.h"

#include "model_loader/semantics/window_axis.h"

namespace swizzle {
namespace {

StatusOr<Shape> NumbersOf(const Node& node, const std::string& name, Shape absent, int64_t least) {
  const size_t length = absent.size();
  SWIZZLE_ASSIGN_OR_RETURN(Shape numbers, IntsAttribute(node, name, std::move(absent)));
  if (numbers.size() != length) {
    return InvalidArgument(Describe(node), ": ", name, " has ", numbers.size(), " numbers instead of ", length);
  }
  for (int64_t number : numbers) {
    if (number < least || number > kMaxWindowExtent) {
      return InvalidArgument(Describe(node), ": ", name, " holds ", number, "; supported are ", least, " to ",
                             kMaxWindowExtent);
    }
  }
  return numbers;
}

StatusOr<Shape> KernelOf(const Node& node, const Shape& from_weight) {
  if (from_weight.empty()) return NumbersOf(node, "kernel_shape", {0, 0}, 1);
  SWIZZLE_ASSIGN_OR_RETURN(const Shape kernel, NumbersOf(node, "kernel_shape", from_weight, 1));
  if (kernel == from_weight) return kernel;
  return InvalidArgument(Describe(node), ": kernel_shape ", ShapeText(kernel), " differs from its weight's ",
                         ShapeText(from_weight));
}

Status ApplyAutoPad(const Node& node, WindowAxis& vertical, WindowAxis& horizontal) {
  SWIZZLE_ASSIGN_OR_RETURN(const AutoPad mode, AutoPadOf(node));
  if (mode == AutoPad::kExplicit) return {};
  for (WindowAxis* axis : {&vertical, &horizontal}) {
    if (axis->before + axis->after > 0) return InvalidArgument(Describe(node), " has both pads and auto_pad");
    if (mode != AutoPad::kValid) axis->PadToSame(mode);
  }
  return {};
}

// Whether ceil_mode pads the end of either axis.
StatusOr<bool> ApplyCeilMode(const Node& node, WindowAxis& vertical, WindowAxis& horizontal) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t ceil_mode, IntAttribute(node, "ceil_mode", 0));
  if (ceil_mode == 0) return false;
  const bool padded_below = vertical.PadForCutWindow();
  const bool padded_right = horizontal.PadForCutWindow();
  return padded_below || padded_right;
}

// The axis over its input with the padding of `given`.
WindowAxis OverPadded(WindowAxis axis, const WindowAxis& given) {
  axis.input += given.before + given.after;
  axis.before -= given.before;
  axis.after -= given.after;
  return axis;
}

Status CheckPlane(const Node& node, const Shape& input) {
  if (input.size() != 4) {
    return Unimplemented(Describe(node), ": its input ", ShapeText(input),
                         " is not [batch, channels, height, width]; only two spatial dimensions are supported");
  }
  constexpr int64_t kMaxPlaneExtent = 1 << 24;
  if (input[2] < 1 || input[3] < 1 || input[2] > kMaxPlaneExtent || input[3] > kMaxPlaneExtent) {
    return InvalidArgument(Describe(node), ": its input ", ShapeText(input), " is empty or too large");
  }
  return {};
}

std::vector<int64_t> Widened(std::initializer_list<int32_t> numbers) { return {numbers.begin(), numbers.end()}; }

}  // namespace

StatusOr<ResolvedWindow> ResolveWindow(const Node& node, const Shape& input, const Shape& from_weight) {
  SWIZZLE_RETURN_IF_ERROR(CheckPlane(node, input));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape kernel, KernelOf(node, from_weight));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape strides, NumbersOf(node, "strides", {1, 1}, 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape dilations, NumbersOf(node, "dilations", {1, 1}, 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape pads, NumbersOf(node, "pads", {0, 0, 0, 0}, 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t count_include_pad, IntAttribute(node, "count_include_pad", 0));
  WindowAxis vertical{input[2], kernel[0], strides[0], dilations[0], pads[0], pads[2]};
  WindowAxis horizontal{input[3], kernel[1], strides[1], dilations[1], pads[1], pads[3]};
  SWIZZLE_RETURN_IF_ERROR(ApplyAutoPad(node, vertical, horizontal));
  const WindowAxis given[] = {vertical, horizontal};
  SWIZZLE_ASSIGN_OR_RETURN(const bool cuts, ApplyCeilMode(node, vertical, horizontal));
  if (vertical.Output() < 1 || horizontal.Output() < 1) {
    return InvalidArgument(Describe(node), ": its window ", ShapeText(kernel), " does not fit its input ",
                           ShapeText(input));
  }
  ResolvedWindow resolved;
  bool counts = count_include_pad != 0;
  if (counts && cuts) {
    resolved.padded_before = {given[0].before, given[1].before, given[0].after, given[1].after};
    vertical = OverPadded(vertical, given[0]);
    horizontal = OverPadded(horizontal, given[1]);
    counts = false;
  }
  const auto narrow = [](int64_t number) { return static_cast<int32_t>(number); };
  resolved.window = Window{narrow(vertical.kernel),
                           narrow(horizontal.kernel),
                           narrow(vertical.stride),
                           narrow(horizontal.stride),
                           narrow(vertical.before),
                           narrow(horizontal.before),
                           narrow(vertical.after),
                           narrow(horizontal.after),
                           narrow(vertical.dilation),
                           narrow(horizontal.dilation),
                           counts};
  resolved.output_height = vertical.Output();
  resolved.output_width = horizontal.Output();
  return resolved;
}

void SetWindow(Node& node, const Window& window) {
  node.attributes["kernel_shape"] = Widened({window.kernel_h, window.kernel_w});
  node.attributes["strides"] = Widened({window.stride_h, window.stride_w});
  node.attributes["dilations"] = Widened({window.dilation_h, window.dilation_w});
  node.attributes["pads"] = Widened({window.pad_top, window.pad_left, window.pad_bottom, window.pad_right});
  if (window.count_include_pad) node.attributes["count_include_pad"] = int64_t{1};
}

Window WindowOf(const Node& node) {
  const auto numbers = [&](const char* name) {
    std::vector<int32_t> narrow;
    for (int64_t number : std::get<std::vector<int64_t>>(node.attributes.at(name))) {
      narrow.push_back(static_cast<int32_t>(number));
    }
    return narrow;
  };
  const auto kernel = numbers("kernel_shape"), strides = numbers("strides"), dilations = numbers("dilations");
  const auto pads = numbers("pads");
  return Window{kernel[0],
                kernel[1],
                strides[0],
                strides[1],
                pads[0],
                pads[1],
                pads[2],
                pads[3],
                dilations[0],
                dilations[1],
                node.attributes.count("count_include_pad") > 0};
}

}  // namespace swizzle
