#include "tests/support/random_detector.h"

#include "tests/support/network_builder.h"

namespace swizzle::testing {
namespace {

constexpr double kZeros = 0.9;

}  // namespace

Network MakeRandomDetector(int64_t image_size, int64_t batch_size) {
  NetworkBuilder b(7, batch_size);
  const int image = b.Value("image", 3, image_size, image_size);
  const int stem = b.Conv(image, 40, SquareWindow(3, 1, 1), 0.0, kRelu);
  const int left = b.Slice(stem, 0, 24), right = b.Slice(stem, 24, 16);
  const int deeper = b.Conv(right, 16, SquareWindow(3, 1, 1), kZeros, kRelu);
  const int joined = b.Concat({left, right, deeper});
  const int small = b.Conv(joined, 32, SquareWindow(3, 2, 1), kZeros, kRelu);
  const Resampling doubled{
      .coordinates = Coordinates::kAsymmetric, .nearest = Nearest::kFloor, .scale_h = 2.0f, .scale_w = 2.0f};
  const auto size = [&](int value) { return b.value(value).height; };
  const int nearest = b.Resize(small, 2 * size(small), 2 * size(small), doubled);
  const int linear = b.Resize(stem, size(nearest), size(nearest), {.linear = true});
  const int shuffled = b.DepthToSpace(b.Conv(small, 12, SquareWindow(1, 1, 0), kZeros, kNoEpilogue), 2);
  const int all = b.Concat({nearest, linear, shuffled});
  const int large = b.Conv(all, 6, SquareWindow(1, 1, 0), kZeros, kNoEpilogue);
  const int few = b.Conv(small, 6, SquareWindow(1, 1, 0), kZeros, kNoEpilogue);
  const int boxes = b.ConcatPlanes({large, few});
  const NetworkPort input = b.Port(image, "image"), output = b.Port(boxes, "boxes");
  Network network = b.Finish();
  network.inputs = {input};
  network.outputs = {output};
  return network;
}

}  // namespace swizzle::testing
