// Products of bytes that end with more than a clamp, in real numbers before they are stored: some rows at a time are
// summed into the first cache and finished there (position_cells.h), so that functions run over many elements at once.
#ifndef SWIZZLE_KERNELS_CPU_INT8_FINISHED_ROWS_H_
#define SWIZZLE_KERNELS_CPU_INT8_FINISHED_ROWS_H_

#include "kernels/cpu/int8/position_cells.h"

namespace swizzle::cpu {

// panel: as ByteCells::quads and ::blocks have it, its residual aside.
template <const ByteCells& kCells>
void FinishedQuads(const QuadRows& rows, const PanelBytes& panel, const RowEnds& ends);
template <const ByteCells& kCells>
void FinishedBlocks(const BlockRows& rows, const PanelBytes& panel, const RowEnds& ends);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_FINISHED_ROWS_H_
