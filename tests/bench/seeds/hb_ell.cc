// Products with weights in blocks of 16x16 and beside them (the HB-ELL workload that hybrid patterns stand for): half
// of the nonzeros in full blocks, half scattered over the rest. Against cuSPARSE's best CSR algorithm, cuSPARSE's
// blocked-ELL, which has to keep every block that is not empty, and dense cuBLASLt; FP16, sums in FP32.
//
//   seeds_hb_ell [--rounds=5] [--launches=5] [--most=8192] [--scattered=.5] [-o results.json]
//
// Ours is the fastest of the table's widths, all nonzeros in groups of 64 rows. "Parts" is what the format suggests:
// full blocks in groups, and strays by CSR on CUDA cores before them, which the groups add. cuSPARSE's blocked-ELL is
// timed only: with every block kept its values are drawn anew.
#include "kernels/format/hb_ell.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>

#include "kernels/cuda/conv/csr/conv_csr.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "tests/bench/cuda/dense_product.h"
#include "tests/bench/cuda/kept_run.h"
#include "tests/bench/seeds/claims.h"

namespace swizzle::bench {
namespace {

constexpr int64_t kBlock = HbEllMatrix::kBlock;
constexpr int64_t kSizes[] = {1024, 2048, 4096, 8192}, kColumns[] = {256, 2048};

struct Options {
  KeptRun run = {.rounds = 5, .launches = 5};
  int64_t most = 8192;
  std::vector<double> densities = {.05, .10, .25};
  double scattered = .5;  // share of the nonzeros
};

struct Line {
  int64_t size = 0, columns = 0;
  double density = 0, blocks = 0, csr = 0, blocked_ell = 0, dense = 0, ours = 1e30, parts = 1e30, error = 0;
  int width = 0;
  double better() const { return std::min(csr, blocked_ell); }
};

// Full blocks, strays, and both.
struct Hybrid {
  DenseMatrix blocks, strays, all;
  double used_blocks = 0;  // share that is not empty
};

Hybrid Draw(int64_t size, double density, double scattered, std::mt19937& random) {
  const DenseMatrix zeros{size, size, std::vector<float>(size * size)};
  Hybrid drawn{zeros, zeros, zeros};
  const double in_blocks = density * (1 - scattered);
  std::bernoulli_distribution full(in_blocks), stray(density * scattered / (1 - in_blocks));
  const auto value = [&] { return (static_cast<float>(random() >> 8) / (1 << 24) + 0.25f) * (random() % 2 ? 1 : -1); };
  int64_t used = 0;
  for (int64_t row = 0; row < size; row += kBlock) {
    for (int64_t col = 0; col < size; col += kBlock) {
      const bool whole = full(random);
      bool any = whole;
      for (int64_t i = 0; i < kBlock * kBlock; ++i) {
        if (!whole && !stray(random)) continue;
        const int64_t at = (row + i / kBlock) * size + col + i % kBlock;
        (whole ? drawn.blocks : drawn.strays).values[at] = drawn.all.values[at] = value();
        any = true;
      }
      used += any;
    }
  }
  drawn.used_blocks = static_cast<double>(used * kBlock * kBlock) / static_cast<double>(size * size);
  return drawn;
}

void MustSparse(cusparseStatus_t status, const char* what) { Must(status == CUSPARSE_STATUS_SUCCESS, what); }

// cuSPARSE's blocked-ELL with every block kept, X by rows or by columns.
class BlockedEll {
 public:
  explicit BlockedEll(int64_t size) : size_(size) {
    const int64_t blocks = size / kBlock;
    std::vector<int32_t> columns(blocks * blocks);
    for (size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<int32_t>(i % blocks);
    std::mt19937 random(4);
    std::vector<uint16_t> values(size * size);
    for (uint16_t& value : values) value = static_cast<uint16_t>(0x3000 | (random() & 0x83FF));  // normal halves
    columns_ = *cuda::DeviceArray<int32_t>::Upload(columns);
    values_ = *cuda::DeviceArray<uint16_t>::Upload(values);
  }

  // The faster order that cuSPARSE takes.
  double Time(cusparseHandle_t handle, Product& product, BothTimer& timer) {
    double least = 1e30;
    for (const cusparseOrder_t order : {CUSPARSE_ORDER_ROW, CUSPARSE_ORDER_COL}) {
      least = std::min(least, TimeOrder(handle, product, order, timer));
    }
    return least;
  }

 private:
  double TimeOrder(cusparseHandle_t handle, Product& product, cusparseOrder_t order, BothTimer& timer) {
    const int64_t n = product.columns(), pitch = order == CUSPARSE_ORDER_ROW ? product.stride() : size_;
    cusparseSpMatDescr_t a;
    cusparseDnMatDescr_t x, y;
    MustSparse(cusparseSetStream(handle, timer.queue()), "use cuSPARSE");
    MustSparse(cusparseCreateBlockedEll(&a, size_, size_, kBlock, size_, columns_.data(), values_.data(),
                                        CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_16F),
               "describe blocked-ELL");
    MustSparse(cusparseCreateDnMat(&x, size_, n, pitch, const_cast<void*>(product.x()), CUDA_R_16F, order), "describe");
    MustSparse(cusparseCreateDnMat(&y, size_, n, pitch, product.y(), CUDA_R_16F, order), "describe");
    const float one = 1, zero = 0;
    const auto op = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const auto algorithm = CUSPARSE_SPMM_BLOCKED_ELL_ALG1;
    size_t bytes = 0;
    double us = 1e30;
    if (cusparseSpMM_bufferSize(handle, op, op, &one, a, x, &zero, y, CUDA_R_32F, algorithm, &bytes) ==
        CUSPARSE_STATUS_SUCCESS) {
      const auto buffer = *cuda::DeviceArray<std::byte>::Allocate(bytes + 1);
      bool fine = true;
      const auto work = [&] {
        fine &= cusparseSpMM(handle, op, op, &one, a, x, &zero, y, CUDA_R_32F, algorithm,
                             const_cast<std::byte*>(buffer.data())) == CUSPARSE_STATUS_SUCCESS;
      };
      work();
      fine &= cudaStreamSynchronize(timer.queue()) == cudaSuccess;
      if (fine) us = timer.Warm(work);
    }
    cusparseDestroySpMat(a), cusparseDestroyDnMat(x), cusparseDestroyDnMat(y);
    return us;
  }

  const int64_t size_;
  cuda::DeviceArray<int32_t> columns_;
  cuda::DeviceArray<uint16_t> values_;
};

struct Width {
  int width;
  void (*queue)(const cuda::GroupOperands&, int, cudaStream_t);
};
constexpr Width kWidths[] = {{64, cuda::QueueGroups<64>}, {128, cuda::QueueGroups<128>}, {256, cuda::QueueGroups<256>}};

std::unique_ptr<cuda::RowGroups> Groups(const DenseMatrix& matrix) {
  auto made = cuda::RowGroups::Make(ShflBwMatrix::FromDense(matrix, cuda::RowGroups::kRows, RowsInOrder(matrix.rows)),
                                    {}, DType::kFloat16);
  Must(made.ok(), "pack groups");
  return *std::move(made);
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : scattered_(options.scattered), timer_(options.run.launches, options.run.rounds) {
    Must(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, 0), "ask the device");
    MustSparse(cusparseCreate(&cusparse_), "start cuSPARSE");
  }

  void Run(int64_t size, double density, std::vector<Line>& lines) {
    std::mt19937 random(static_cast<uint32_t>(size + 1000 * density));
    const Hybrid drawn = Draw(size, density, scattered_, random);
    const CsrMatrix csr = CsrMatrix::FromDense(drawn.all), strays = CsrMatrix::FromDense(drawn.strays);
    const DeviceCsr device_csr(csr, DType::kFloat16);
    const auto all = Groups(drawn.all), blocks = Groups(drawn.blocks);
    auto quads = cuda::QuadCsr::Make(strays, {}, DType::kFloat16);
    Must(quads.ok(), "pack strays");
    BlockedEll blocked(size);
    for (const int64_t columns : kColumns) {
      Line line{.size = size, .columns = columns, .density = density, .blocks = drawn.used_blocks};
      Product product(csr, columns, DType::kFloat16);
      Timer plain(5, 5);
      line.csr = TimeCusparse(cusparse_, product, device_csr, plain).us;
      line.blocked_ell = blocked.Time(cusparse_, product, timer_);
      line.dense = TimeDense(drawn.all, product, timer_).warm;
      for (const Width& width : kWidths) {
        const cuda::GroupOperands operands = {all.get(),   DType::kFloat16,  product.x(), nullptr,
                                              product.y(), product.stride(), columns};
        const double us = Time(product, line, [&] { width.queue(operands, multiprocessors_, timer_.queue()); });
        if (us < line.ours) line.ours = us, line.width = width.width;
        line.parts = std::min(line.parts, TimeParts(product, line, width, *blocks, **quads));
      }
      lines.push_back(line);
      std::printf(
          "%5ld %4.2f %5ld | CSR %8.2f blocked-ELL %8.2f cuBLASLt %7.2f | ours %7.2f (%d) parts %7.2f | %5.2f "
          "%5.2f | error %.1e, blocks %.3f\n",
          size, density, columns, line.csr, line.blocked_ell, line.dense, line.ours, line.width, line.parts,
          line.better() / line.ours, line.dense / line.ours, line.error, line.blocks);
      std::fflush(stdout);
    }
  }

 private:
  double Time(Product& product, Line& line, const std::function<void()>& work) {
    line.error = std::max(line.error, product.Error(work, timer_.queue()));
    return timer_.Warm(work);
  }

  double TimeParts(Product& product, Line& line, const Width& width, const cuda::RowGroups& blocks,
                   const cuda::QuadCsr& strays) {
    const cuda::SpmmOperands first = {&strays,     DType::kFloat16,  product.x(),      nullptr,
                                      product.y(), product.stride(), product.columns()};
    const cuda::GroupOperands second = {&blocks,     DType::kFloat16,  product.x(),      product.y(),
                                        product.y(), product.stride(), product.columns()};
    const cuda::SpmmPlan plan = cuda::MakeSpmmPlan(cuda::SpmmWay::kPieces, strays.counts(), product.columns(),
                                                   cuda::CurrentSpmmDevice(), DType::kFloat16);
    return Time(product, line, [&] {
      cuda::QueueSpmm(first, plan, timer_.queue());
      width.queue(second, multiprocessors_, timer_.queue());
    });
  }

  const double scattered_;
  BothTimer timer_;
  int multiprocessors_ = 0;
  cusparseHandle_t cusparse_;
};

// The paper simulated a sparse tensor core with new instructions, against one that takes 4 of 16: what can be repeated
// is the comparison with what a GPU has.
std::vector<Claim> Claims(const std::vector<Line>& lines) {
  std::vector<double> sparse, csr, ell, dense;
  for (const Line& line : lines) {
    sparse.push_back(line.better() / line.ours), dense.push_back(line.dense / line.ours);
    csr.push_back(line.csr / line.ours), ell.push_back(line.blocked_ell / line.ours);
  }
  return {{.what = "at best over its baseline (there 4:16 units, here dense FP16)",
           .published = 3.3,
           .hardware = "V100",
           .simulated = true,
           .ours = *std::max_element(dense.begin(), dense.end())},
          {.what = "over the better of cuSPARSE's CSR and blocked-ELL", .ours = GeometricMean(sparse)},
          {.what = "over cuSPARSE's CSR", .ours = GeometricMean(csr)},
          {.what = "over cuSPARSE's blocked-ELL", .ours = GeometricMean(ell)},
          {.what = "over dense FP16", .ours = GeometricMean(dense)}};
}

void WriteJson(const Options& options, const std::vector<Line>& lines) {
  if (options.run.output.empty()) return;
  std::ofstream out(options.run.output);
  out.precision(5);
  out << "{\n  " << FactsOf(options.run) << ",\n  \"method\": \"" << MethodOf(options.run) << "\",\n  \"cases\": [\n";
  const char* comma = "";
  for (const Line& line : lines) {
    out << std::exchange(comma, ",\n") << "    {\"size\": " << line.size << ", \"density\": " << line.density
        << ", \"n\": " << line.columns << ", \"blocks\": " << line.blocks << ", \"csr_us\": " << line.csr
        << ", \"blocked_ell_us\": " << line.blocked_ell << ", \"dense_us\": " << line.dense
        << ", \"ours_us\": " << line.ours << ", \"width\": " << line.width << ", \"parts_us\": " << line.parts
        << ", \"error\": " << line.error << "}";
  }
  out << "\n  ],\n  \"system\": \"HB-ELL\", \"paper\": \"Wu et al.\",\n  \"claims\": "
      << ClaimsJson(Claims(lines)).dump(1) << "\n}\n";
}

int Main(const Options& options) {
  Bench bench(options);
  std::vector<Line> lines;
  for (const int64_t size : kSizes) {
    for (const double density : options.densities) {
      if (size <= options.most) bench.Run(size, density, lines);
    }
  }
  std::vector<double> ratios, dense, parts;
  bool wrong = false;
  for (const Line& line : lines) {
    ratios.push_back(line.better() / line.ours), dense.push_back(line.dense / line.ours);
    parts.push_back(line.parts / line.ours);
    wrong = wrong || !(line.error <= 4e-3);
  }
  std::printf("geometric means over ours: better of cuSPARSE %.2f (least %.2f), cuBLASLt %.2f, in parts %.2f\n",
              GeometricMean(ratios), *std::min_element(ratios.begin(), ratios.end()), GeometricMean(dense),
              GeometricMean(parts));
  PrintClaims("HB-ELL (Wu et al.)", Claims(lines));
  WriteJson(options, lines);
  if (wrong) std::printf("results were WRONG\n");
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Products with hybrid blocks on a GPU against cuSPARSE and dense cuBLASLt");
  app.add_option("--most", options.most, "leaves larger matrices out");
  app.add_option("--densities", options.densities, "shares of nonzeros");
  app.add_option("--scattered", options.scattered, "share of the nonzeros that are in no full block");
  swizzle::bench::AddRunOptions(app, options.run);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
