// Linear layers through oneDNN's sgemm, fp32, on plain [batch, features] matrices: row linear_dense_f32_onednn (kNchw,
// planes of one position). Output features are shared by the stream's threads; each sgemm runs on one.
#ifndef SWIZZLE_KERNELS_CPU_CONV_ONEDNN_LINEAR_H_
#define SWIZZLE_KERNELS_CPU_CONV_ONEDNN_LINEAR_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

bool AcceptsOnednnLinear(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnLinear(const Weight& weight, const Problem& problem);
void RunOnednnLinear(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_ONEDNN_LINEAR_H_
