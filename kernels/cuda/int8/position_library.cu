#include <utility>
#include <vector>

#include "kernels/cuda/int8/position_bytes.h"
#include "kernels/cuda/int8/position_ends.cuh"
#include "kernels/cuda/int8/quantise_positions.h"
#include "kernels/cuda/runtime/cublas_matmul.h"

namespace swizzle::cuda {
namespace {

// cuBLASLt multiplies signed bytes, and wants rows of whole vectors; its sums go through the workspace.
constexpr int64_t kUnit = 16;
constexpr int32_t kShift = 128;
constexpr int kThreads = 256;

int64_t PaddedRows(const Problem& problem) { return RoundUp(problem.output.channels, kUnit); }

class PositionMatrix final : public PackedWeight {
 public:
  PositionMatrix(DeviceArray<int8_t> matrix, PositionEnds ends) : matrix_(std::move(matrix)), ends_(std::move(ends)) {}
  size_t bytes() const override { return matrix_.bytes() + ends_.bytes(); }
  const int8_t* matrix() const { return matrix_.data(); }
  const PositionEnds& ends() const { return ends_; }

 private:
  const DeviceArray<int8_t> matrix_;
  const PositionEnds ends_;
};

// A pack of channels a thread.
template <typename Store>
__global__ void __launch_bounds__(kThreads)
    EndPositions(const int32_t* sums, const int32_t* start, int64_t positions, int rows, int padded_rows,
                 const __grid_constant__ Store store) {
  constexpr int kPack = Store::kPack;
  const int packs = (rows + kPack - 1) / kPack;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < positions * packs;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t position = i / packs;
    const int row = static_cast<int>(i % packs) * kPack;
    auto pack = *reinterpret_cast<const Pack<int32_t, kPack>*>(sums + position * padded_rows + row);
#pragma unroll
    for (int c = 0; c < kPack; ++c) pack.values[c] += __ldg(start + row + c);
    store.StoreChannels(store.EndsOf(row), static_cast<int>(position), position * rows + row, min(rows - row, kPack),
                        pack.values);
  }
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionLibrary(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const PositionWeight made, MakePositionWeight(weight));
  const int64_t cols = RoundUp(made.bytes.cols, kUnit);
  std::vector<int8_t> matrix(PaddedRows(problem) * cols);
  for (int64_t row = 0; row < made.bytes.rows; ++row) {
    for (const ByteWeight::Entry& entry : made.bytes.entries[row]) matrix[row * cols + entry.column] = entry.value;
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<int8_t>::Upload(matrix));
  SWIZZLE_ASSIGN_OR_RETURN(PositionEnds ends, PositionEnds::Make(made, kShift));
  return std::make_unique<PositionMatrix>(std::move(uploaded), std::move(ends));
}

size_t PositionLibraryWorkspaceBytes(const Problem& problem) {
  const PositionLines lines(problem);
  return lines.bytes() + static_cast<size_t>(lines.positions * PaddedRows(problem)) * sizeof(int32_t);
}

void RunPositionLibrary(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const PositionMatrix&>(*args.weight);
  const PositionLines lines(*args.problem);
  const QuantisedPositions positions = lines.In(args.workspace.data());
  auto* const sums = reinterpret_cast<int32_t*>(args.workspace.data() + lines.bytes());
  QueueQuantisedLines(args, lines, /*is_signed=*/true, positions, stream);
  Product product;
  product.dtype = DType::kInt8;
  product.m = PaddedRows(*args.problem);
  product.n = lines.positions;
  product.k = lines.line;
  product.a = {weight.matrix(), product.k, 0, /*is_weight=*/true};
  product.transpose_a = true;
  product.b = {positions.bytes, product.k};
  product.d = sums;
  product.ld_d = product.m;
  CudaStream& cuda_stream = CudaStream::From(stream);
  cuda_stream.Report(QueueProduct(product, cuda_stream));
  WithPositionStore(args, weight.ends(), positions.steps, 0, [&]<typename Store>(const Store& store) {
    const int rows = static_cast<int>(args.problem->output.channels);
    const int64_t packs = lines.positions * CeilDiv(rows, Store::kPack);
    EndPositions<Store>
        <<<LaunchGrid::OfLoops(packs, kThreads, MultiprocessorsOf(stream)), kThreads, 0, QueueOf(stream)>>>(
            sums, weight.ends().start(), lines.positions, rows, static_cast<int>(product.m), store);
  });
}

}  // namespace swizzle::cuda
