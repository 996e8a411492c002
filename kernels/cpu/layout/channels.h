// Channels copied from one activation to another: kConcat, rows concat_<layout>_<type>_base, and kSlice, rows
// slice_<layout>_<type>_base. In most layouts a channel's positions of an image or panel are neighbours, and so are its
// next channels': copies are long runs. Those of kBlocked16 are lanes where parts do not begin on blocks. Planes are
// concatenated in kNchw alone. Channels that already are where they go are left alone: an operand may be a part of the
// output in memory, and the output a part of the operand.
#ifndef SWIZZLE_KERNELS_CPU_LAYOUT_CHANNELS_H_
#define SWIZZLE_KERNELS_CPU_LAYOUT_CHANNELS_H_

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

bool AcceptsConcat(const Problem& problem);
// The same of bytes: all operands have one scale and zero point.
bool AcceptsConcatBytes(const Problem& problem);
bool AcceptsSliceBytes(const Problem& problem);

// The padding channels of a kBlocked16 output are set to zero; spare positions of panels are copied with the others.
void RunConcat(const KernelArgs& args, Stream& stream);
void RunSlice(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_LAYOUT_CHANNELS_H_
