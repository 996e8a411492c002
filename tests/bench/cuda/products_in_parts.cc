#include "tests/bench/cuda/products_in_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/conv/parts/conv_csr_parts.h"
#include "kernels/cuda/conv/parts/conv_dense_parts.h"

namespace swizzle::bench {
namespace {

constexpr Storage kByPositions = {Layout::kNhwc, DType::kFloat32};

// What lies in rows `stride` apart, by positions.
std::vector<float> ByPositions(const std::vector<float>& rows, int64_t count, int64_t stride, int64_t positions) {
  std::vector<float> turned(count * positions);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t n = 0; n < positions; ++n) turned[n * count + row] = rows[row * stride + n];
  }
  return turned;
}

std::vector<float> ByRows(const std::vector<float>& positions, int64_t count, int64_t stride, int64_t columns) {
  std::vector<float> rows(count * stride);
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t n = 0; n < columns; ++n) rows[row * stride + n] = positions[n * count + row];
  }
  return rows;
}

}  // namespace

ProductsInParts::ProductsInParts(int launches, int rounds) {
  int l2_bytes = 0;
  Must(cudaDeviceGetAttribute(&device_.multiprocessors, cudaDevAttrMultiProcessorCount, 0), "ask the device");
  Must(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), "ask the device");
  device_.l2_bytes = l2_bytes;
  auto stream = cuda::CudaStream::Make(device_);
  Must(stream.ok(), "make a stream");
  stream_ = *std::move(stream);
  timer_ = std::make_unique<Timer>(launches, rounds, stream_->queue());
}

LibraryTime ProductsInParts::TimeDense(Product& product) {
  const CsrMatrix& matrix = product.matrix();
  const int64_t columns = product.columns(), stride = product.stride();
  Problem problem{{}, {1, matrix.cols, 1, columns}, {1, matrix.rows, 1, columns}};
  problem.from = problem.to = kByPositions;
  Weight weight;
  weight.matrix = matrix.ToDense();
  const auto packed = cuda::PrepareConvNhwcParts(weight, problem);
  auto x = cuda::DeviceArray<float>::Upload(ByPositions(product.host_x(), matrix.cols, stride, columns));
  auto y = cuda::DeviceArray<float>::Allocate(matrix.rows * columns);
  auto workspace = cuda::DeviceArray<std::byte>::Allocate(cuda::ConvNhwcPartsWorkspaceBytes(problem));
  Must(packed.ok() && x.ok() && y.ok() && workspace.ok(), "allocate for products of parts");
  const Operand inputs[] = {{x->data(), DType::kFloat32}};
  KernelArgs args;
  args.problem = &problem;
  args.weight = packed->get();
  args.inputs = inputs;
  args.output = {y->data(), DType::kFloat32};
  args.workspace = {workspace->data(), workspace->bytes()};
  const auto work = [&] { cuda::ConvNhwcParts(args, *stream_); };
  Must(stream_->Time(work, {}).ok(), "choose an algorithm");
  LibraryTime result{0, 0, "three parts"};
  const auto into_rows = [&] {
    work();
    Must(stream_->Synchronize().ok(), "run products of parts");
    std::vector<float> found(y->size());
    Must(cudaMemcpy(found.data(), y->data(), y->bytes(), cudaMemcpyDeviceToHost), "read");
    const std::vector<float> rows = ByRows(found, matrix.rows, stride, columns);
    Must(cudaMemcpy(product.y(), rows.data(), rows.size() * sizeof(float), cudaMemcpyHostToDevice), "write");
  };
  result.error = product.Error(into_rows, stream_->queue());
  result.us = timer_->Time(work);
  return result;
}

LibraryTime ProductsInParts::TimeSparse(Product& product, const cuda::FragmentCsr& weight) {
  const int64_t depth = product.matrix().cols, stride = product.stride();
  auto halves = cuda::DeviceArray<uint16_t>::Allocate(2 * depth * stride);
  auto inverses = cuda::DeviceArray<float>::Allocate(stride);
  Must(halves.ok() && inverses.ok(), "allocate for products of parts");
  const cuda::PositionParts x = {halves->data(), inverses->data()};
  const cuda::CsrPartOperands operands = {&weight,          x, nullptr, static_cast<float*>(product.y()), stride,
                                          product.columns()};
  LibraryTime best{1e30, 0, "none"};
  for (const auto& [queue, what] : {std::pair(&cuda::QueueCsrParts<64>, "64"),
                                    {&cuda::QueueCsrParts<128>, "128"},
                                    {&cuda::QueueCsrParts<192>, "192"}}) {
    const auto work = [&] {
      cuda::SplitRows(static_cast<const float*>(product.x()), depth, stride, x, *stream_);
      queue(operands, device_.multiprocessors, stream_->queue());
    };
    best.error = std::max(best.error, product.Error(work, stream_->queue()));
    const double us = timer_->Time(work);
    if (us < best.us) best.us = us, best.what = what;
  }
  return best;
}

}  // namespace swizzle::bench
