// Attention between a program's layers on a device: products of stacks of matrices, and softmax between them, which
// read queries, keys and values where the layers left them.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_DEVICE_ATTENTION_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_DEVICE_ATTENTION_H_

#include "kernels/cpu/tokens/view_attention.h"
#include "model_loader/interpreter/values/device.h"

namespace swizzle::regions {

// Queues it. All data lie on the device; `attention` says where. RESOURCE_EXHAUSTED if there is no memory for scores.
Status AttendOnDevice(const cpu::ViewAttention& attention, interpreter::Device& device);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_DEVICE_ATTENTION_H_
