// The columns that a convolution multiplies its weights with, one panel of output positions at a time.
//
// Row k = (channel * kernel_h + i) * kernel_w + j of a panel holds, for each output position, the input at tap (i, j)
// of the window there, and zero where the tap falls outside the plane. For a pointwise window over kPanels in FP32 that
// is the input itself. Otherwise rows are gathered into a workspace on demand and in blocks, so that a block can be
// consumed while it is in the first cache (im2col-inl.h); from bfloat16 they are widened on the way, once for all the
// rows of the weight that read them. From kBlocked16, for pointwise windows only, they are transposed.
//
// Neighbouring output positions read input positions that are window.stride_w apart, the ends of rows aside: a vector
// of them is one masked load, or a few. What these are is planned once a panel and holds for all channels.
//
// Counts are elements unless named otherwise. An object and its workspace belong to one thread.
#ifndef SWIZZLE_KERNELS_CPU_CONV_IM2COL_H_
#define SWIZZLE_KERNELS_CPU_CONV_IM2COL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/simd/bfloat16.h"

namespace swizzle::cpu {

class PanelColumns {
 public:
  // What a tap reads for one vector of positions, or a part of it. The input of lane l is
  //   offset + channel * channel_stride + l * window.stride_w.
  struct Piece {
    int64_t offset;  // before the input, or in another row, where lane 0 is not of this piece
    int64_t channel_stride;
    uint32_t lanes;     // bit l (2 l for stride 2, to mask the two vectors that are read): lane l is of this piece
    uint16_t position;  // of lane 0, in the panel
    bool last;          // of its vector; lanes of none of a vector's pieces are zero
  };

  // Whether the columns are rows of the input: its values in its order.
  static bool AreInputRows(const Problem& problem) {
    return problem.from.layout == Layout::kPanels && problem.window().IsPointwise();
  }
  // Whether the columns are the input itself.
  static bool IsDirect(const Problem& problem) { return AreInputRows(problem) && !IsBfloat16(problem.from); }

  // What one object needs to serve blocks of up to `rows` rows; a multiple of kBufferAlignment.
  static size_t WorkspaceBytes(const Problem& problem, int64_t rows);

  // `input` is in kPanels, kNchw or, for a pointwise window, kBlocked16, as the problem says. All must outlive the
  // object.
  PanelColumns(const Problem& problem, const Operand& input, std::span<std::byte> workspace);

  bool are_input_rows() const { return AreInputRows(problem_); }
  // Whether the input is bfloat16, else it is FP32.
  bool widens() const { return IsBfloat16(problem_.from); }
  // Row `row` of a panel. REQUIRES: are_input_rows().
  template <typename T>
  const T* InputRow(int64_t panel, int64_t row) const {
    return input<T>() + output_grid_.Begin(panel) * problem_.input.channels + row * Width(panel);
  }

  bool are_blocks() const { return problem_.from.layout == Layout::kBlocked16; }
  // Where, in a panel, the kBlockChannels channels of a block are from a position on, as far as positions follow one
  // another: none do behind the batch's last. REQUIRES: are_blocks().
  Slab BlockAt(int64_t panel, int64_t position, int64_t block) const {
    const int64_t first = output_grid_.Begin(panel) + position;
    if (first >= problem_.input.positions()) return {};
    Slab slab = SlabAt(problem_.input, problem_.from.layout, first, block * kBlockChannels);
    slab.positions = std::min(slab.positions, Width(panel) - position);
    return slab;
  }

  // Plans the pieces of an output panel, for vectors of `vector` positions, a power of two up to kPositionUnit.
  void SetPanel(int64_t panel, int64_t vector);
  // Of the panel that was set, in the order of positions; each vector has at least one.
  std::span<const Piece> Pieces(int64_t tap) const {
    return {pieces_ + tap * kMaxPanelWidth, static_cast<size_t>(counts_[tap])};
  }
  int64_t taps() const { return window_.taps(); }
  int64_t stride() const { return window_.stride_w; }
  int64_t Width(int64_t panel) const { return output_grid_.Width(panel); }
  int64_t width() const { return Width(panel_); }  // of the panel that was set
  template <typename T>
  const T* input() const {
    return input_.As<T>();
  }
  int64_t input_elements() const { return LayoutElements(problem_.input, problem_.from.layout); }
  // Room for the rows of a block, each as wide as the panel.
  float* columns() const { return columns_; }

 private:
  // Lanes of a vector whose windows begin at evenly spaced input positions.
  struct Segment {
    int64_t begin;  // input position of tap (0, 0) of lane 0, as if the plane had no ends
    int64_t image;
    uint32_t lanes;
  };
  static size_t PieceBytes(const Problem& problem);
  static size_t CountBytes(const Problem& problem);
  static size_t MaskBytes(const Problem& problem);

  // The segments of the `vector` positions from `first` on. Sets row_masks_ and column_masks_: the lanes whose tap in
  // row i, or column j, of the window is inside the plane.
  std::span<const Segment> Segments(int64_t first, int64_t vector, std::span<Segment, kPositionUnit> room);
  // Adds the pieces of `tap` that read `lanes` of a segment, which lane 0 would read at input position `source`.
  void AddPieces(int64_t tap, const Segment& segment, int64_t source, uint32_t lanes, int64_t position);
  void AddPiece(int64_t tap, int64_t offset, int64_t channel_stride, uint32_t lanes, int64_t position);

  const Problem& problem_;
  const Window& window_;  // the problem's
  const Operand input_;
  const PanelGrid input_grid_;
  const PanelGrid output_grid_;
  Piece* const pieces_;    // kMaxPanelWidth a tap
  int32_t* const counts_;  // of each tap
  uint32_t* const row_masks_;
  uint32_t* const column_masks_;
  float* const columns_;
  int64_t panel_ = -1;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_IM2COL_H_
