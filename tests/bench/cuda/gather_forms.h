// Forms of the kernel that gathers rows of whole numbers, for the ablation of its parts: what a plan never chooses.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_GATHER_FORMS_H_
#define SWIZZLE_TESTS_BENCH_CUDA_GATHER_FORMS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <string_view>

#include "kernels/cuda/int8/spmm_bytes.h"

namespace swizzle::bench {

struct NamedForm {
  std::string_view name;
  cuda::GatherForm form;
};
// Two copies ahead of products and without each part, then one copy ahead and none.
inline constexpr NamedForm kGatherForms[] = {{"full", {}},
                                             {"no_banks_apart", {.conflict_free = false}},
                                             {"no_transpose", {.transposes = false}},
                                             {"no_index_order", {.names_at_once = false}},
                                             {"one_ahead", {.stages = 2}},
                                             {"no_prefetch", {.stages = 1}},
                                             {"narrow", {.tile = 4}},
                                             {"shared", {.shared = true}},
                                             {"shared_one_ahead", {.shared = true, .stages = 2}},
                                             {"shared_no_prefetch", {.shared = true, .stages = 1}}};

// Sums as cuda::QueueSums makes them, by the form of that place in the list. REQUIRES: 16-8, 8-8, 8-4 or 4-4 bits, X
// with signs.
void QueueSumsBy(size_t form, const cuda::ByteOperands& operands, cudaStream_t queue);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_GATHER_FORMS_H_
