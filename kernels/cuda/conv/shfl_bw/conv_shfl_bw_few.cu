#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_few.cuh"
#include "kernels/cuda/runtime/epilogue.cuh"

namespace swizzle::cuda {
namespace shfl_bw_few {
namespace {

template <typename S, typename T, typename Function>
__global__ void __launch_bounds__(S::kThreads)
    MultiplyFew(const __grid_constant__ Args args, const __grid_constant__ Ending<Function> ending) {
  __shared__ alignas(16) float parts[S::kParts][S::kRows][S::kPitch];
  LetNextStart();
  const int row_tile = blockIdx.x % args.row_tiles;
  const uint4 bits = __ldg(reinterpret_cast<const uint4*>(args.groups + row_tile / S::kTilesOfGroup));
  const RowGroup group = {bits.x, bits.y, bits.z, bits.w};
  const int first_row = row_tile % S::kTilesOfGroup * S::kRows;
  const int64_t first_column = int64_t{blockIdx.x / args.row_tiles} * S::kColumns;
  const int g = threadIdx.x % kWarp / 4;
  {
    // Past the row's end its last columns are read again; they are not stored.
    const int64_t column = min(first_column + g * S::kOctets, args.stride - S::kOctets);
    typename S::Sums sums = {};
    SumSteps<S, T>(args, group, first_row, static_cast<const uint16_t*>(args.x) + column, sums);
    StoreAllSums<S>(sums, parts);
  }
  for (int i = threadIdx.x; i < S::kRows * S::kColumns / 2; i += S::kThreads) {
    const int row = i / (S::kColumns / 2), column = i % (S::kColumns / 2) * 2;
    const int place = static_cast<int>(group.place) + first_row + row, to = __ldg(args.rows + place);
    if (to < 0 || first_column + column >= args.stride) continue;
    const int64_t at = int64_t{to} * args.stride + first_column + column;
    const float bias = __ldg(args.bias + place);
    float pair[2] = {bias, bias};
    if (args.residual != nullptr) {
      const float2 residual =
          UnpackPair<T>(*reinterpret_cast<const uint32_t*>(static_cast<const T*>(args.residual) + at));
      pair[0] = fmaf(residual.x, args.beta, bias), pair[1] = fmaf(residual.y, args.beta, bias);
    }
#pragma unroll
    for (const auto& part : parts) {
      const float2 sums = *reinterpret_cast<const float2*>(&part[row][column]);
      pair[0] = fmaf(sums.x, args.alpha, pair[0]), pair[1] = fmaf(sums.y, args.alpha, pair[1]);
    }
    ending.template Apply<T>(pair);
    *reinterpret_cast<uint32_t*>(static_cast<T*>(args.y) + at) = PackPair<T>(pair[0], pair[1]);
  }
}

template <typename S, typename T>
void Queue(const GroupOperands& operands, cudaStream_t queue) {
  const Args args = ArgsOf(operands, S::kTilesOfGroup);
  const LaunchGrid grid(args.row_tiles * CeilDiv(operands.columns, int64_t{S::kColumns}));
  WithEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    LaunchDependent(MultiplyFew<S, T, Function>, grid, S::kThreads, 0, queue, args, ending);
  });
}

// Of the sizes that were timed (PERFORMANCE.md, Few positions) the fastest. Where tiles of 32 rows would be on half of
// the multiprocessors at most, tiles have 16. A multiprocessor has one block of 16 warps: with more columns than 32
// these need many steps, and with more than 64 they were not tried.
template <typename T>
void QueueTiles(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  const RowGroups& weight = *operands.weight;
  const bool has_few_rows = 2 * weight.count() * Tile<1, 2>::kTilesOfGroup <= multiprocessors;
  const auto queue_tiles = [&]<typename FewRows, typename ManyRows>() {
    has_few_rows ? Queue<FewRows, T>(operands, queue) : Queue<ManyRows, T>(operands, queue);
  };
  if (operands.columns <= 8) return queue_tiles.template operator()<Tile<1, 1, 4, 16>, Tile<1, 2, 4, 16>>();
  if (operands.columns <= 16) return queue_tiles.template operator()<Tile<2, 1, 4, 16>, Tile<2, 2, 4, 16>>();
  if (operands.columns <= 32) return queue_tiles.template operator()<Tile<4, 1, 4, 16>, Tile<4, 2, 3, 16>>();
  constexpr int64_t kManySteps = 48;
  if (operands.columns > 64 || weight.steps() < kManySteps * weight.count())
    return Queue<Tile<8, 1>, T>(operands, queue);
  queue_tiles.template operator()<Tile<8, 1, 2, 16>, Tile<8, 2, 1, 16>>();
}

}  // namespace
}  // namespace shfl_bw_few

void QueueFewColumns(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  if (operands.weight->count() == 0 || operands.columns == 0) return;
  VisitHalf(operands.dtype,
            [&]<DType kHalf>() { shfl_bw_few::QueueTiles<Element<kHalf>>(operands, multiprocessors, queue); });
}

}  // namespace swizzle::cuda
