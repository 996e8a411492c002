// Networks for tests of plans on GPUs, and which kernels leave such plans one way.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_PLAN_GPU_NETWORKS_H_
#define SWIZZLE_TESTS_MODEL_LOADER_PLAN_GPU_NETWORKS_H_

#include <cstdint>

#include "model_loader/network/network.h"
#include "tests/support/network_builder.h"

namespace swizzle::testing {

// As detectors are: a value cut in two, parts put together with what is made of them, pools and resized planes beside
// each other, and a Concat within a Concat.
class Detector {
 public:
  Network Build() {
    const int image = b_.Value("image", 3, 22, 26);
    int x = Conv(image, 32, 3, 2);
    x = b_.Concat({Block(x, 32), x});
    const int small = Conv(x, 16, 1, 1);
    const int pool = b_.Pool(Op::kMaxPool, small, SquareWindow(5, 1, 2));
    const int pools = b_.Concat({small, pool, b_.Pool(Op::kMaxPool, pool, SquareWindow(5, 1, 2))});
    const int wide = b_.Resize(Conv(pools, 24, 3, 2), 12, 14, {.coordinates = Coordinates::kAsymmetric});
    const int all = b_.Concat({wide, b_.Resize(x, 12, 14, {.linear = true})});
    const int y = b_.Linear(b_.MeanOfPlane(Block(all, 40)), 10, 0.0);
    const NetworkPort in = b_.Port(image, "image"), out = b_.Port(y, "y");
    Network network = b_.Finish();
    network.inputs = {in};
    network.outputs = {out};
    return network;
  }

 private:
  int Conv(int input, int64_t outputs, int32_t kernel, int32_t stride) {
    return b_.Function(b_.Conv(input, outputs, SquareWindow(kernel, stride, kernel / 2), 0.0, kNoEpilogue),
                       {FunctionKind::kSilu});
  }
  // Of 3 times `half` channels.
  int Block(int input, int64_t half) {
    const int both = Conv(input, 2 * half, 1, 1);
    const int left = b_.Slice(both, 0, half), right = b_.Slice(both, half, half);
    const int sum = b_.Pointwise(Op::kAdd, {right, Conv(Conv(right, half, 3, 1), half, 3, 1)});
    return b_.Concat({left, right, sum});
  }

  NetworkBuilder b_{3, 0};
};

inline bool IsInRows(const Kernel& kernel) {
  return kernel.key.input.layout != Layout::kNhwc && kernel.key.output.layout != Layout::kNhwc;
}
inline bool IsInNhwc(const Kernel& kernel) {
  return kernel.key.input.layout != Layout::kRows && kernel.key.output.layout != Layout::kRows;
}
inline bool CopiesInBatched(const Kernel& kernel) {
  const bool copies = kernel.key.op == Op::kConcat || kernel.key.op == Op::kSlice;
  return !copies || kernel.key.input.layout == Layout::kBatched;
}
inline bool IsAny(const Kernel&) { return true; }

// Images are read as they are, which only layers with their pooling do.
inline bool ConvertsNoImage(const Kernel& kernel) {
  return kernel.key.op != Op::kConvertLayout || kernel.key.input.layout != Layout::kNchw;
}

inline Network StemNetwork(int64_t height, int64_t width) {
  NetworkBuilder b(3, 0);
  const int image = b.Value("image", 3, height, width);
  const int stem = b.Conv(image, 64, SquareWindow(7, 2, 3), 0.0, kRelu);
  const int x = b.Conv(b.Pool(Op::kMaxPool, stem, SquareWindow(3, 2, 1)), 16, SquareWindow(3, 1, 1), 0.5, kRelu);
  const NetworkPort in = b.Port(image, "image"), out = b.Port(x, "x");
  Network network = b.Finish();
  network.inputs = {in};
  network.outputs = {out};
  return network;
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_MODEL_LOADER_PLAN_GPU_NETWORKS_H_
