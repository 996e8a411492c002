// Convolutions that read where they are told to, the grid that a linear map tells, and columns as images again.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/products/products.h"
#include "model_loader/interpreter/operators/windows/window.h"

namespace swizzle::interpreter {
namespace {

// Of images [batch, channels, height, width].
struct Deformed {
  Window window;
  int64_t batch = 0, channels = 0, groups = 1, offset_groups = 1, rows = 0;
  const float *image = nullptr, *offsets = nullptr, *mask = nullptr;  // the mask may be null

  int64_t height() const { return window.input[0]; }
  int64_t width() const { return window.input[1]; }
};

// Between the pixels around a place; zero outside.
float Between(const float* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1.0 && x > -1.0 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0.0f;
  const double top = std::floor(y), left = std::floor(x);
  const double down = y - top, right = x - left;
  const auto row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
  const auto at = [&](int64_t i, int64_t j) {
    return i >= 0 && i < height && j >= 0 && j < width ? static_cast<double>(plane[i * width + j]) : 0.0;
  };
  return static_cast<float>((1 - down) * ((1 - right) * at(row, column) + right * at(row, column + 1)) +
                            down * ((1 - right) * at(row + 1, column) + right * at(row + 1, column + 1)));
}

StatusOr<Deformed> ReadDeformed(Call& call, const Array& x, const Array& w) {
  Deformed conv;
  if (x.rank() != 4 || w.rank() != 4) return Unimplemented("it is supported of two spatial dimensions alone");
  SWIZZLE_ASSIGN_OR_RETURN(conv.groups, call.Int("group", 1));
  SWIZZLE_ASSIGN_OR_RETURN(conv.offset_groups, call.Int("offset_group", 1));
  SWIZZLE_ASSIGN_OR_RETURN(conv.window, ReadWindow(call, x.shape, Shape(w.shape.begin() + 2, w.shape.end())));
  conv.batch = x.shape[0];
  conv.channels = x.shape[1];
  conv.rows = w.shape[0];
  const auto divides = [](int64_t part, int64_t whole) { return part >= 1 && whole % part == 0; };
  if (conv.window.kernel != Shape(w.shape.begin() + 2, w.shape.end()) || !divides(conv.groups, conv.channels) ||
      !divides(conv.groups, conv.rows) || !divides(conv.offset_groups, conv.channels) ||
      w.shape[1] != conv.channels / conv.groups) {
    return InvalidArgument("a weight of shape ", ShapeText(w.shape), " in ", conv.groups, " groups, with ",
                           conv.offset_groups, " of offsets, does not fit an input of ", ShapeText(x.shape));
  }
  return conv;
}

// Offsets, or a mask: [batch, groups * taps * each, height, width] of the result.
Status CheckField(const Array& field, const Deformed& conv, int64_t each, const char* what) {
  const Shape expected = {conv.batch, conv.offset_groups * conv.window.taps() * each, conv.window.output[0],
                          conv.window.output[1]};
  if (field.shape == expected) return {};
  return InvalidArgument(what, " has shape ", ShapeText(field.shape), "; it must be ", ShapeText(expected));
}

// What the taps of one channel of one image read, [taps, positions].
void GatherTaps(const Deformed& conv, int64_t image, int64_t channel, float* columns) {
  const Window& window = conv.window;
  const int64_t taps = window.taps(), positions = window.positions(), kernel_width = window.kernel[1];
  const int64_t group = channel / (conv.channels / conv.offset_groups);
  const float* const plane = conv.image + (image * conv.channels + channel) * conv.height() * conv.width();
  const int64_t first = (image * conv.offset_groups + group) * taps;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const float* const down = conv.offsets + (first + tap) * 2 * positions;
    const float* const right = down + positions;
    const float* const share = conv.mask != nullptr ? conv.mask + (first + tap) * positions : nullptr;
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t row = p / window.output[1], column = p % window.output[1];
      const int64_t y = row * window.strides[0] - window.pads_begin[0] + tap / kernel_width * window.dilations[0];
      const int64_t x = column * window.strides[1] - window.pads_begin[1] + tap % kernel_width * window.dilations[1];
      const float read = Between(plane, conv.height(), conv.width(), static_cast<double>(y) + down[p],
                                 static_cast<double>(x) + right[p]);
      columns[tap * positions + p] = share != nullptr ? read * share[p] : read;
    }
  }
}

}  // namespace

StatusOr<Array> DeformConv(Call& call) {
  constexpr size_t kX = 0, kW = 1, kOffsets = 2, kBias = 3, kMask = 4;
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(kX));
  SWIZZLE_ASSIGN_OR_RETURN(const Array w, call.Floats(kW));
  SWIZZLE_ASSIGN_OR_RETURN(const Array offsets, call.Floats(kOffsets));
  SWIZZLE_ASSIGN_OR_RETURN(Deformed conv, ReadDeformed(call, x, w));
  SWIZZLE_RETURN_IF_ERROR(CheckField(offsets, conv, 2, "the offset"));
  Array mask;
  if (call.Has(kMask)) {
    SWIZZLE_ASSIGN_OR_RETURN(mask, call.Floats(kMask));
    SWIZZLE_RETURN_IF_ERROR(CheckField(mask, conv, 1, "the mask"));
    conv.mask = mask.As<float>().data();
  }
  conv.image = x.As<float>().data();
  conv.offsets = offsets.As<float>().data();
  const int64_t taps = conv.window.taps(), positions = conv.window.positions();
  const int64_t depth = conv.channels / conv.groups * taps;
  SWIZZLE_ASSIGN_OR_RETURN(Array columns, call.New(DType::kFloat32, {conv.batch, conv.groups, depth, positions}));
  float* const to = columns.Mutable<float>().data();
  cpu::CpuStream::From(call.stream())
      .ParallelRanges(conv.batch * conv.channels, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          GatherTaps(conv, plane / conv.channels, plane % conv.channels, to + plane * taps * positions);
        }
      });
  const Array weight = w.WithShape({conv.groups, conv.rows / conv.groups, depth});
  SWIZZLE_ASSIGN_OR_RETURN(Array y, MatrixProduct(call, weight, columns));
  y = y.WithShape({conv.batch, conv.rows, conv.window.output[0], conv.window.output[1]});
  if (call.Has(kBias)) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array bias, call.Floats(kBias));
    if (bias.shape != Shape{conv.rows}) return InvalidArgument("the bias has shape ", ShapeText(bias.shape));
    const Array operands[] = {y, bias.WithShape({conv.rows, 1, 1})};
    Call add(call.node(), call.opset(), operands, call.memory(), call.stream());
    SWIZZLE_ASSIGN_OR_RETURN(y, Add(add));
  }
  return call.As(y, call.In(kX).dtype);
}

StatusOr<Array> AffineGrid(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array theta, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> size, call.List(1));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t align_corners, call.Int("align_corners", 0));
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if ((axes != 2 && axes != 3) || theta.shape != Shape{size[0], axes, axes + 1}) {
    return InvalidArgument("a map of shape ", ShapeText(theta.shape), " does not fit a grid for ", ShapeText(size));
  }
  Shape shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(axes);
  SWIZZLE_ASSIGN_OR_RETURN(Array grid, call.New(DType::kFloat32, shape));
  const auto coordinate = [&](int64_t i, int64_t length) {
    if (align_corners == 0) return static_cast<double>(2 * i + 1) / static_cast<double>(length) - 1.0;
    return length > 1 ? 2.0 * static_cast<double>(i) / static_cast<double>(length - 1) - 1.0 : -1.0;
  };
  float* to = grid.Mutable<float>().data();
  const int64_t places = ProductOf(shape, 1, axes + 1);
  for (int64_t n = 0; n < size[0]; ++n) {
    const float* const map = theta.As<float>().data() + n * axes * (axes + 1);
    for (int64_t p = 0; p < places; ++p) {
      double at[3] = {};  // from the last dimension on
      int64_t rest = p;
      for (int64_t a = 0; a < axes; ++a) {
        const int64_t length = size[static_cast<size_t>(axes + 1 - a)];
        at[a] = coordinate(rest % length, length);
        rest /= length;
      }
      for (int64_t row = 0; row < axes; ++row) {
        double sum = map[row * (axes + 1) + axes];
        for (int64_t a = 0; a < axes; ++a) sum += map[row * (axes + 1) + a] * at[a];
        *to++ = static_cast<float>(sum);
      }
    }
  }
  return call.As(grid, call.In(0).dtype);
}

StatusOr<Array> Col2Im(Call& call) {
  const Array& given = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.As(given, ComputeType(given.dtype)));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> image, call.List(1));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> block, call.List(2));
  if (x.rank() != 3 || image.size() != block.size() || image.empty()) {
    return InvalidArgument("an input of shape ", ShapeText(x.shape), " is not columns of blocks ", ShapeText(block),
                           " of an image ", ShapeText(image));
  }
  Shape input = {x.shape[0], 1};
  input.insert(input.end(), image.begin(), image.end());
  SWIZZLE_ASSIGN_OR_RETURN(const Window window, ReadWindow(call, input, block));
  const int64_t taps = window.taps(), positions = window.positions(), plane = window.plane();
  if (taps < 1 || x.shape[1] % taps != 0 || x.shape[2] != positions) {
    return InvalidArgument("an input of shape ", ShapeText(x.shape), " has not ", positions, " columns of ", taps);
  }
  Shape shape = input;
  shape[1] = x.shape[1] / taps;
  SWIZZLE_ASSIGN_OR_RETURN(const Array sources, Taps(call, window));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(x.dtype, shape));
  VisitComputeType(x.dtype, [&]<typename T>(T) {
    const auto to = y.Mutable<T>();
    std::ranges::fill(to, T(0));
    const T* from = x.As<T>().data();
    for (int64_t p = 0; p < shape[0] * shape[1]; ++p) {
      const int32_t* source = sources.As<int32_t>().data();
      for (int64_t i = 0; i < taps * positions; ++i, ++source, ++from) {
        if (*source >= 0) to[static_cast<size_t>(p * plane + *source)] += *from;
      }
    }
  });
  return call.As(y, given.dtype);
}

}  // namespace swizzle::interpreter
