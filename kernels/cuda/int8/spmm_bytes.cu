#include "kernels/cuda/int8/spmm_bytes.cuh"
#include "kernels/cuda/int8/sum_ends.cuh"

namespace swizzle::cuda {
namespace {

template <int kWeights, int kColumns>
void GatherSums(const ByteOperands& operands, cudaStream_t queue) {
  QueueGather<ByteWidths<kWeights, kColumns>, StoreSums, false>(ArgsOf(operands),
                                                                StoreSums{static_cast<int32_t*>(operands.y)}, queue);
}

using GatherSumsFunction = void (*)(const ByteOperands&, cudaStream_t);
struct Wider {
  int weight_bits, column_bits;
  GatherSumsFunction queue;
};
constexpr Wider kWider[] = {{16, 16, GatherSums<16, 16>}, {16, 8, GatherSums<16, 8>}, {16, 4, GatherSums<16, 4>},
                            {12, 4, GatherSums<12, 4>},   {8, 4, GatherSums<8, 4>},   {4, 4, GatherSums<4, 4>}};

const Wider* FindWider(int weight_bits, int column_bits) {
  for (const Wider& wider : kWider) {
    if (wider.weight_bits == weight_bits && wider.column_bits == column_bits) return &wider;
  }
  return nullptr;
}

bool IsEmpty(const ByteOperands& operands) { return operands.weight->count() == 0 || operands.columns == 0; }

}  // namespace

std::string_view ByteWayName(ByteWay way) {
  constexpr std::string_view kNames[] = {"gather", "gather_shared", "resident128", "resident64"};
  return kNames[static_cast<int>(way)];
}

bool FitsResident(ByteWay way, int64_t cols) {
  const int64_t width = way == ByteWay::kResident128 ? 128 : 64;
  return cols * width <= static_cast<int64_t>(MostSharedMemory());
}

bool HasSums(int weight_bits, int column_bits) {
  return (weight_bits == 8 && column_bits == 8) || FindWider(weight_bits, column_bits) != nullptr;
}

void QueueSums(const ByteOperands& operands, ByteWay way, int multiprocessors, cudaStream_t queue) {
  if (IsEmpty(operands)) return;
  const StoreSums output = {static_cast<int32_t*>(operands.y)};
  if (operands.weight->bits() != 8 || operands.x.bits != 8) {
    return FindWider(operands.weight->bits(), operands.x.bits)->queue(operands, queue);
  }
  if (operands.x.is_signed) {
    return QueueWay<ByteWidths<8, 8>>(ArgsOf(operands), output, way, multiprocessors, queue);
  }
  QueueWay<ByteWidths<8, 8, false>>(ArgsOf(operands), output, way, multiprocessors, queue);
}

void QueueSumsWithout(BytePart part, const ByteOperands& operands, cudaStream_t queue) {
  if (IsEmpty(operands)) return;
  using W = ByteWidths<8, 8>;
  const StoreSums output = {static_cast<int32_t*>(operands.y)};
  const ByteArgs args = ArgsOf(operands);
  switch (part) {
    case BytePart::kPrefetch:
      return QueueGather<W, StoreSums, false, 1>(args, output, queue);
    case BytePart::kConflictFree:
      return QueueGather<W, StoreSums, false, 3, false>(args, output, queue);
    case BytePart::kTranspose:
      return QueueGather<W, StoreSums, false, 3, true, false>(args, output, queue);
  }
}

void QueueEnded(const ByteOperands& operands, const SumEnds& ends, ByteWay way, int multiprocessors,
                cudaStream_t queue) {
  if (IsEmpty(operands)) return;
  using W = ByteWidths<8, 8, false>;
  const ByteArgs args = ArgsOf(operands);
  WithStore(ends, operands.y, [&](const auto& store) { QueueWay<W>(args, store, way, multiprocessors, queue); });
}

}  // namespace swizzle::cuda
