// Which part of an activation a thread works on, for kernels that slide a window over planes.
#ifndef SWIZZLE_KERNELS_CUDA_WINDOW_PLANES_CUH_
#define SWIZZLE_KERNELS_CUDA_WINDOW_PLANES_CUH_

#include "kernels/cuda/runtime/elements.cuh"

namespace swizzle::cuda {

// Where (channel, image, position) lies; in elements. In kBatched an image is a pack of kBatchUnit of them.
struct PlaneStrides {
  int64_t channel;
  int64_t image;
  int32_t position;
  int32_t height, width;

  static PlaneStrides Of(const Extent& extent, Layout layout) { return Of(extent, layout, extent.channels); }
  // `pitch`: in kNhwc, from one position to the next.
  static PlaneStrides Of(const Extent& extent, Layout layout, int64_t pitch) {
    const auto height = static_cast<int32_t>(extent.height), width = static_cast<int32_t>(extent.width);
    if (layout == Layout::kRows) return {RowStride(extent.positions()), extent.plane(), 1, height, width};
    if (layout == Layout::kBatched) {
      const auto batch = static_cast<int32_t>(RoundUp(extent.batch, kBatchUnit));
      return {RowStride(BatchedPositions(extent)), kBatchUnit, batch, height, width};
    }
    return {1, extent.plane() * pitch, static_cast<int32_t>(pitch), height, width};
  }
  template <typename Operand>
  static PlaneStrides Of(const Extent& extent, Layout layout, const Operand& operand) {
    return Of(extent, layout, operand.PitchOr(extent.channels));
  }
  __device__ int64_t At(uint32_t plane_channel, uint32_t plane_image) const {
    return plane_channel * channel + plane_image * image;
  }
};

// A thread's part of the output: `rows` output rows from `y` on, at column `x`, of a pack of channels of an image, or
// in kBatched of a channel of a pack of images.
struct PlanePart {
  uint32_t channel, image;
  int32_t x, y;
};

// Cuts the output into such parts, neighbours in memory to neighbouring threads.
class PlaneParts {
 public:
  // `pack` divides the channels; 1 in kRows, kBatchUnit in kBatched.
  PlaneParts(const Extent& output, Layout layout, int rows, int pack)
      : rows_(rows),
        pack_(pack),
        width_(output.width),
        groups_(CeilDiv(output.height, rows)),
        channels_inner_(layout == Layout::kNhwc),
        images_inner_(layout == Layout::kBatched) {
    const int64_t images = images_inner_ ? CeilDiv(output.batch, pack) : output.batch;
    const int64_t channels = images_inner_ ? output.channels : output.channels / pack;
    packs_ = FastDivider(channels);
    images_ = FastDivider(images);
    count_ = static_cast<uint32_t>(channels * output.width * CeilDiv(output.height, rows) * images);
  }

  uint32_t count() const { return count_; }

  __device__ bool Take(uint32_t item, PlanePart& part) const {
    if (item >= count_) return false;
    if (channels_inner_) part.channel = packs_.Split(item) * pack_;
    if (images_inner_) part.image = images_.Split(item);
    part.x = static_cast<int32_t>(width_.Split(item));
    part.y = static_cast<int32_t>(groups_.Split(item)) * rows_;
    if (channels_inner_) {
      part.image = item;
      return true;
    }
    if (!images_inner_) part.image = images_.Split(item);
    part.channel = item;
    return true;
  }

 private:
  int rows_, pack_;
  FastDivider packs_, width_, groups_, images_;
  uint32_t count_;
  bool channels_inner_, images_inner_;
};

// A window, for the device.
struct DeviceWindow {
  int32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;

  explicit DeviceWindow(const Window& window)
      : kernel_h(window.kernel_h),
        kernel_w(window.kernel_w),
        stride_h(window.stride_h),
        stride_w(window.stride_w),
        pad_top(window.pad_top),
        pad_left(window.pad_left),
        dilation_h(window.dilation_h),
        dilation_w(window.dilation_w) {}

  // Calls visit(tap, position) for each tap of the window at output (y, x) that lies inside the plane.
  template <typename Visit>
  __device__ void ForEachTap(const PlaneStrides& plane, int32_t y, int32_t x, const Visit& visit) const {
    for (int32_t i = 0; i < kernel_h; ++i) {
      const int32_t row = y * stride_h - pad_top + i * dilation_h;
      if (row < 0 || row >= plane.height) continue;
      for (int32_t j = 0; j < kernel_w; ++j) {
        const int32_t column = x * stride_w - pad_left + j * dilation_w;
        if (column < 0 || column >= plane.width) continue;
        visit(i * kernel_w + j, row * plane.width + column);
      }
    }
  }
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_WINDOW_PLANES_CUH_
