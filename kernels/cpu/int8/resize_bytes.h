// Planes of bytes made larger or smaller, each position the nearest of the input's, and blocks of channels that become
// positions: rows resize_full_panels_u8_<isa> and depth_to_space_full_panels_u8_<isa>. Those of base go byte by byte,
// those of VBMI pick the 64 positions of a panel out of two of the input's lines at a time. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_RESIZE_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_RESIZE_BYTES_H_

#include <array>
#include <cstdint>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

// The nearest, of one scale and zero point.
bool AcceptsResizeBytes(const Problem& problem);

// Of one scale and zero point, likewise.
bool AcceptsDepthToSpaceBytes(const Problem& problem);

void ResizeBytes(const KernelArgs& args, Stream& stream);
void ResizeBytesVbmi(const KernelArgs& args, Stream& stream);
void DepthToSpaceBytes(const KernelArgs& args, Stream& stream);
void DepthToSpaceBytesVbmi(const KernelArgs& args, Stream& stream);

// Where the positions of a panel are in the input, for each channel of the output: byte[i] of a line of kMaxPanelWidth.
struct PanelSources {
  std::array<int64_t, kMaxPanelWidth> line;  // of channel 0
  std::array<uint8_t, kMaxPanelWidth> byte;
  int64_t step = 1;  // lines from a channel to the next
};

// All channels of a panel, a line each.
using PickPanel = void (*)(const PanelSources& sources, const uint8_t* input, int64_t channels, uint8_t* to);
// With VBMI.
void PickPanelVbmi(const PanelSources& sources, const uint8_t* input, int64_t channels, uint8_t* to);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_RESIZE_BYTES_H_
