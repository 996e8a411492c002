#include "kernels/cuda/int8/spmm_bytes.cuh"
#include "kernels/cuda/int8/sum_ends.cuh"

namespace swizzle::cuda {
namespace {

using SumsFunction = void (*)(const ByteOperands&, ByteWay, int multiprocessors, cudaStream_t);
// One copy ahead of products is faster than two where a tile has eight chunks.
template <typename W>
void QueueSumsOf(const ByteOperands& operands, ByteWay way, int multiprocessors, cudaStream_t queue) {
  constexpr int kStages = W::kChunks == 8 ? 2 : 3;
  const StoreSums output = {static_cast<int32_t*>(operands.y)};
  QueueWay<W, StoreSums, kStages>(ArgsOf(operands), output, way, multiprocessors, queue);
}

struct Widths {
  int weight_bits, column_bits;
  SumsFunction queue;
};
constexpr Widths kWidths[] = {{8, 8, QueueSumsOf<ByteWidths<8, 8>>},   {16, 16, QueueSumsOf<ByteWidths<16, 16>>},
                              {16, 8, QueueSumsOf<ByteWidths<16, 8>>}, {16, 4, QueueSumsOf<ByteWidths<16, 4>>},
                              {12, 4, QueueSumsOf<ByteWidths<12, 4>>}, {8, 4, QueueSumsOf<ByteWidths<8, 4>>},
                              {4, 4, QueueSumsOf<ByteWidths<4, 4>>}};

const Widths* FindWidths(int weight_bits, int column_bits) {
  for (const Widths& widths : kWidths) {
    if (widths.weight_bits == weight_bits && widths.column_bits == column_bits) return &widths;
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

bool HasSums(int weight_bits, int column_bits, ByteWay way) {
  const bool gathers = way == ByteWay::kGather || way == ByteWay::kGatherShared;
  return (gathers || column_bits <= 8) && FindWidths(weight_bits, column_bits) != nullptr;
}

void QueueSums(const ByteOperands& operands, ByteWay way, int multiprocessors, cudaStream_t queue) {
  if (IsEmpty(operands)) return;
  if (!operands.x.is_signed) {
    SWIZZLE_CHECK(operands.weight->bits() == 8 && operands.x.bits == 8);
    const StoreSums output = {static_cast<int32_t*>(operands.y)};
    return QueueWay<ByteWidths<8, 8, false>>(ArgsOf(operands), output, way, multiprocessors, queue);
  }
  FindWidths(operands.weight->bits(), operands.x.bits)->queue(operands, way, multiprocessors, queue);
}

void QueueEnded(const ByteOperands& operands, const SumEnds& ends, ByteWay way, int multiprocessors,
                cudaStream_t queue) {
  if (IsEmpty(operands)) return;
  using W = ByteWidths<8, 8, false>;
  const ByteArgs args = ArgsOf(operands);
  WithStore(ends, operands.y, [&](const auto& store) { QueueWay<W>(args, store, way, multiprocessors, queue); });
}

}  // namespace swizzle::cuda
