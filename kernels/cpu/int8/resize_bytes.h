// Planes of bytes made larger or smaller, each position the nearest of the input's: rows resize_full_panels_u8_base,
// byte by byte, and resize_full_panels_u8_vbmi, which picks the 64 positions of a panel out of two of the input's at a
// time. Blocks of channels that become positions, too: row depth_to_space_full_panels_u8_base. Stateless, thread-safe.
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

void DepthToSpaceBytes(const KernelArgs& args, Stream& stream);
void ResizeBytes(const KernelArgs& args, Stream& stream);
void ResizeBytesVbmi(const KernelArgs& args, Stream& stream);

// Where the positions of a panel are in the input: of[i] is position i's.
struct PanelSources {
  std::array<int64_t, kMaxPanelWidth> of;
};

// All channels of a panel, a line of kMaxPanelWidth each, of an input in kFullPanels.
using PickPanel = void (*)(const PanelSources& sources, const uint8_t* input, int64_t channels, uint8_t* to);
// With VBMI.
void PickPanelVbmi(const PanelSources& sources, const uint8_t* input, int64_t channels, uint8_t* to);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_RESIZE_BYTES_H_
