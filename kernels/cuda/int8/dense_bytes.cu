#include <utility>
#include <vector>

#include "kernels/cuda/int8/byte_layer.h"
#include "kernels/cuda/int8/conv_bytes.h"
#include "kernels/cuda/int8/sum_ends.cuh"
#include "kernels/cuda/runtime/cublas_matmul.h"

namespace swizzle::cuda {
namespace {

// cuBLASLt multiplies signed bytes, and wants rows of whole vectors: bytes of the input less 128, filled up by zeros,
// and the sums go through the workspace.
constexpr int64_t kUnit = 16;
constexpr int32_t kShift = 128;
constexpr int kThreads = 256;
constexpr int64_t kAlignment = 256;

struct Shape {
  int64_t positions, rows, cols, padded_rows, padded_cols;
  explicit Shape(const Problem& problem)
      : positions(problem.output.positions()),
        rows(problem.output.channels),
        cols(problem.input.channels),
        padded_rows(RoundUp(rows, kUnit)),
        padded_cols(RoundUp(cols, kUnit)) {}
  int64_t InputBytes() const { return RoundUp(positions * padded_cols, kAlignment); }
  int64_t SumBytes() const { return positions * padded_rows * int64_t{sizeof(int32_t)}; }
};

class DenseBytesWeight final : public PackedWeight {
 public:
  DenseBytesWeight(DeviceArray<int8_t> matrix, RowEnds ends) : matrix_(std::move(matrix)), ends_(std::move(ends)) {}
  size_t bytes() const override { return matrix_.bytes() + ends_.bytes(); }
  const int8_t* matrix() const { return matrix_.data(); }
  const RowEnds& ends() const { return ends_; }

 private:
  const DeviceArray<int8_t> matrix_;
  const RowEnds ends_;
};

// Four bytes a thread.
__global__ void __launch_bounds__(kThreads)
    ShiftToSigned(const uint8_t* from, uint32_t* to, int64_t positions, int cols, int padded_cols) {
  const int words = padded_cols / 4;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < positions * words;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t position = i / words;
    const int first = static_cast<int>(i % words) * 4;
    const uint8_t* const in = from + position * cols + first;
    uint32_t word = 0;
    if (cols % 4 == 0 && first < cols) {
      word = *reinterpret_cast<const uint32_t*>(in) ^ 0x80808080u;
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (first + j < cols) word |= uint32_t{in[j] ^ 0x80u} << 8 * j;
      }
    }
    to[i] = word;
  }
}

template <typename Store>
__global__ void __launch_bounds__(kThreads)
    EndSums(const int32_t* sums, int64_t positions, int rows, int padded_rows, const __grid_constant__ Store store) {
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < positions * rows;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t position = i / rows;
    const int row = static_cast<int>(i % rows);
    const int32_t sum[1] = {sums[position * padded_rows + row]};
    store.Store(row, i, sum);
  }
}

}  // namespace

bool AcceptsDenseBytes(const Problem& problem) {
  return AcceptsByteLayer(problem, Layout::kNhwc) && problem.window().IsPointwise() && CountsFit(problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDenseBytes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  const Shape shape(problem);
  std::vector<int8_t> matrix(shape.padded_rows * shape.padded_cols);
  for (int64_t row = 0; row < bytes.rows; ++row) {
    for (const ByteWeight::Entry& entry : bytes.entries[row]) {
      matrix[row * shape.padded_cols + entry.column] = entry.value;
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<int8_t>::Upload(matrix));
  SWIZZLE_ASSIGN_OR_RETURN(RowEnds ends, RowEnds::Make(bytes, kShift));
  return std::make_unique<DenseBytesWeight>(std::move(uploaded), std::move(ends));
}

size_t DenseBytesWorkspaceBytes(const Problem& problem) {
  const Shape shape(problem);
  return static_cast<size_t>(shape.InputBytes() + shape.SumBytes());
}

void RunDenseBytes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const DenseBytesWeight&>(*args.weight);
  const Shape shape(*args.problem);
  CudaStream& cuda_stream = CudaStream::From(stream);
  const cudaStream_t queue = QueueOf(stream);
  const int multiprocessors = MultiprocessorsOf(stream);
  std::byte* const input = args.workspace.data();
  auto* const sums = reinterpret_cast<int32_t*>(input + shape.InputBytes());
  ShiftToSigned<<<LaunchGrid::OfLoops(shape.positions * shape.padded_cols / 4, kThreads, multiprocessors), kThreads, 0,
                  queue>>>(args.Input<uint8_t>(0), reinterpret_cast<uint32_t*>(input), shape.positions,
                           static_cast<int>(shape.cols), static_cast<int>(shape.padded_cols));
  Product product;
  product.dtype = DType::kInt8;
  product.m = shape.padded_rows;
  product.n = shape.positions;
  product.k = shape.padded_cols;
  product.a = {weight.matrix(), product.k, 0, /*is_weight=*/true};
  product.transpose_a = true;
  product.b = {input, product.k};
  product.d = sums;
  product.ld_d = product.m;
  cuda_stream.Report(QueueProduct(product, cuda_stream));
  WithStore(weight.ends().Of(args), args.output.data, [&]<typename Store>(const Store& store) {
    EndSums<Store>
        <<<LaunchGrid::OfLoops(shape.positions * shape.rows, kThreads, multiprocessors), kThreads, 0, queue>>>(
            sums, shape.positions, static_cast<int>(shape.rows), static_cast<int>(shape.padded_rows), store);
  });
}

}  // namespace swizzle::cuda
