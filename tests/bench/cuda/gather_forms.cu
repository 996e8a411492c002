#include <iterator>
#include <utility>

#include "kernels/cuda/int8/spmm_bytes.cuh"
#include "kernels/cuda/int8/sum_ends.cuh"
#include "tests/bench/cuda/gather_forms.h"

namespace swizzle::bench {
namespace {

using FormFunction = void (*)(const cuda::ByteOperands&, cudaStream_t);

template <typename W, size_t kAt>
void QueueForm(const cuda::ByteOperands& operands, cudaStream_t queue) {
  constexpr cuda::GatherForm kForm = kGatherForms[kAt].form;
  using Tiled = typename W::template WithTile<kForm.tile>;
  cuda::QueueGather<Tiled, cuda::StoreSums, kForm>(cuda::ArgsOf(operands), {static_cast<int32_t*>(operands.y)}, queue);
}

template <typename W, size_t... kAt>
void QueueFormAt(size_t form, const cuda::ByteOperands& operands, cudaStream_t queue, std::index_sequence<kAt...>) {
  constexpr FormFunction kFunctions[] = {QueueForm<W, kAt>...};
  kFunctions[form](operands, queue);
}

}  // namespace

void QueueSumsBy(size_t form, const cuda::ByteOperands& operands, cudaStream_t queue) {
  constexpr std::make_index_sequence<std::size(kGatherForms)> kAll;
  const int weights = operands.weight->bits(), columns = operands.x.bits;
  if (weights == 16) return QueueFormAt<cuda::ByteWidths<16, 8>>(form, operands, queue, kAll);
  if (weights == 4) return QueueFormAt<cuda::ByteWidths<4, 4>>(form, operands, queue, kAll);
  if (columns == 4) return QueueFormAt<cuda::ByteWidths<8, 4>>(form, operands, queue, kAll);
  QueueFormAt<cuda::ByteWidths<8, 8>>(form, operands, queue, kAll);
}

}  // namespace swizzle::bench
