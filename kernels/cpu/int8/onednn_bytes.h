// Dense convolutions and linear layers of bytes through oneDNN: rows conv_nhwc_dense_u8_onednn (kNhwc), and
// linear_dense_u8_onednn and linear_dense_u8_f32_onednn (kNchw, planes of one position).
//
// oneDNN multiplies and adds. The 32-bit sums end as those of our own rows do (position_sums.h): its own ending adds
// the zero point before it rounds, and so gives other bits. The rows need VNNI, without which its products saturate.
// Every call runs on one thread, and computes a piece of the layer (conv_pieces.h).
#ifndef SWIZZLE_KERNELS_CPU_INT8_ONEDNN_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_ONEDNN_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

bool AcceptsOnednnConvBytes(const Problem& problem);
bool AcceptsOnednnLinearBytes(const Problem& problem);
// HoldsBytes, where so few are zeros that a dense product may be the fastest, and oneDNN has generated code: what it
// falls back to takes seconds.
bool HoldsOnednnBytes(const Weight& weight, const Problem& problem);

// `problem.threads` is the number that the layer will run on.
StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnBytes(const Weight& weight, const Problem& problem);
// Null where oneDNN wants the weights in another order for this plane.
StatusOr<SharedWeight> OnednnBytesForPlane(const SharedWeight& form, const Problem& problem);
size_t OnednnBytesWorkspace(const Problem& problem);
void RunOnednnBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_ONEDNN_BYTES_H_
