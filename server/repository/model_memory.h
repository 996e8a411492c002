// What a model's executors need of the memory (server/memory/memory_need.h), and smaller batches for one that needs too
// much. Functions only.
#ifndef SWIZZLE_SERVER_REPOSITORY_MODEL_MEMORY_H_
#define SWIZZLE_SERVER_REPOSITORY_MODEL_MEMORY_H_

#include <cstdint>
#include <filesystem>

#include "model_loader/interpreter/memory/run_budget.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/run/plan.h"
#include "server/memory/memory_need.h"
#include "server/model/model.h"

namespace swizzle {

// Of executors of this plan; of one on a device, what they hold on the host. `resident` is left to the caller, and
// `tuned`.
MemoryNeed NeedOf(const ModelSpec& spec, const Plan& plan);

// Of executors of this plan on its device, of the device's memory.
MemoryNeed NeedOnDevice(const ModelSpec& spec, const Plan& plan);

// Likewise, of executors that run a model in regions there.
MemoryNeed NeedOnDevice(const ModelSpec& spec, const interpreter::RunMemory& run);

// Of executors that run a model node by node, one run of which took so much on the host: larger batches are taken to
// need a proportional part more, beside copies of the inputs and outputs.
MemoryNeed NeedOf(const ModelSpec& spec, const interpreter::RunMemory& run);

// What one run node by node may take, where `left` bytes are left for all of the model's executors: half of that, so
// that others may grow. `most` where no limit is known.
int64_t MostOfOneRun(const ModelSpec& spec, const MemoryRoom& room, int64_t left, int64_t most);

// Lets batches have no more than `largest` rows, or tokens where the model has sequences.
void LowerBatch(int64_t largest, ModelSpec& spec);

// Of a model's file, or of all that such a checkpoint's index stands for. 0 for what cannot be looked at.
int64_t FileBytes(const std::filesystem::path& file);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MODEL_MEMORY_H_
