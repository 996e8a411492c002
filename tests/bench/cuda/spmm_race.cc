#include "tests/bench/cuda/spmm_race.h"

#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

namespace swizzle::bench {

SpmmRace::SpmmRace(const SpmmRaceOptions& options)
    : options_(options),
      timer_(options.launches, options.rounds),
      in_parts_(options.launches, options.rounds),
      device_(cuda::CurrentSpmmDevice()) {
  dtype_ = options.dtype == "f16" ? DType::kFloat16 : options.dtype == "bf16" ? DType::kBFloat16 : DType::kFloat32;
  Must(cusparseCreate(&cusparse_) == CUSPARSE_STATUS_SUCCESS, "start cuSPARSE");
  Must(cublasCreate(&cublas_) == CUBLAS_STATUS_SUCCESS, "start cuBLAS");
  void* workspace = nullptr;
  constexpr size_t kWorkspace = size_t{32} << 20;
  Must(cudaMalloc(&workspace, kWorkspace), "allocate");
  cublasSetWorkspace(cublas_, workspace, kWorkspace);
}

SpmmCase SpmmRace::Run(const std::string& name, const CsrMatrix& matrix, int64_t columns) {
  SpmmCase c;
  c.name = name, c.rows = matrix.rows, c.cols = matrix.cols, c.columns = columns, c.nonzeros = matrix.nnz();
  Product product(matrix, columns, dtype_);
  const DeviceCsr csr(matrix, dtype_);
  const LibraryTime sparse = TimeCusparse(cusparse_, product, csr, timer_);
  c.cusparse = sparse.us, c.algorithm = sparse.what;
  Expect(sparse.error, c, "cuSPARSE");
  const LibraryTime dense = TimeCublas(cublas_, product, timer_);
  c.cublas = dense.us, c.dense_error = dense.error;
  Expect(dense.error, c, "cuBLAS");
  if (dtype_ == DType::kFloat32) {
    const LibraryTime parts = in_parts_.TimeDense(product);
    c.parts = parts.us, c.parts_error = parts.error;
    Expect(parts.error, c, "the dense product in parts");
    TimeSputnik(product, csr, c);
  }
  TimeOurs(product, c);
  if (dtype_ == DType::kFloat32) TimeWgmma(product, c);
  return c;
}

void SpmmRace::Expect(double error, const SpmmCase& c, const std::string& what, bool cuts_off) const {
  const double most = dtype_ == DType::kFloat32 ? (cuts_off ? 3e-5 : 1e-5) : dtype_ == DType::kFloat16 ? 4e-3 : 1.6e-2;
  if (error <= most) return;
  std::printf("WRONG: %s N=%ld %s differs by %g\n", c.name.c_str(), static_cast<long>(c.columns), what.c_str(), error);
  ++wrong_;
}

double SpmmRace::TimeOneSputnik(Product& product, const SputnikMatrix& matrix, const SputnikParts& parts,
                                const SpmmCase& c) {
  const auto work = [&] {
    QueueSputnikSpmm(matrix, static_cast<const float*>(product.x()), static_cast<float*>(product.y()),
                     static_cast<int32_t>(product.padded()), static_cast<int32_t>(product.stride()), parts,
                     timer_.queue());
  };
  Expect(product.Error(work, timer_.queue()), c, "Sputnik-style");
  return timer_.Time(work);
}

void SpmmRace::TimeSputnik(Product& product, const DeviceCsr& csr, SpmmCase& c) {
  const SputnikMatrix swizzled = csr.Sputnik(c.rows, true), plain = csr.Sputnik(c.rows, false);
  c.sputnik = 1e30;
  int best = 64;
  for (const int columns : {8, 16, 32, 64}) {
    const double us = TimeOneSputnik(product, swizzled, {.columns = columns}, c);
    if (us < c.sputnik) c.sputnik = us, best = columns;
  }
  if (!options_.ablation) return;
  c.unbalanced = TimeOneSputnik(product, plain, {.columns = best}, c);
  c.scalar = TimeOneSputnik(product, swizzled, {.columns = best, .vector_loads = false}, c);
  c.unscaled = TimeOneSputnik(product, swizzled, {.columns = best, .prescaled = false}, c);
  c.rolled = TimeOneSputnik(product, swizzled, {.columns = best, .unrolled_residue = false}, c);
}

void SpmmRace::TimeOurs(Product& product, SpmmCase& c) {
  auto packed = cuda::QuadCsr::Make(product.matrix(), {}, dtype_);
  Must(packed.ok(), "pack");
  const cuda::SpmmOperands operands = {packed->get(), dtype_,           product.x(),      nullptr,
                                       product.y(),   product.stride(), product.columns()};
  const auto time = [&](const cuda::SpmmPlan& plan) {
    const auto work = [&] { cuda::QueueSpmm(operands, plan, timer_.queue()); };
    Expect(product.Error(work, timer_.queue()), c, cuda::SpmmPlanText(plan));
    return timer_.Time(work);
  };
  c.simt = 1e30;
  for (auto way : {cuda::SpmmWay::kPieces, cuda::SpmmWay::kTile128, cuda::SpmmWay::kTile256}) {
    const cuda::SpmmPlan plan = cuda::MakeSpmmPlan(way, (*packed)->counts(), product.columns(), device_, dtype_);
    if (plan.way != way) continue;  // does not fit
    const double us = time(plan);
    if (us < c.simt) c.simt = us, c.plan = cuda::SpmmPlanText(plan);
  }
  c.ours = c.simt;
  c.best_plan = c.ours, c.best_plan_text = c.plan;
  if (!options_.every_plan) return;
  for (const cuda::SpmmPlan& other : cuda::AllSpmmPlans((*packed)->counts(), device_)) {
    const double us = time(other);
    c.plans[cuda::SpmmPlanText(other)] = us;
    if (us < c.best_plan) c.best_plan = us, c.best_plan_text = cuda::SpmmPlanText(other);
  }
}

void SpmmRace::TimeWgmma(Product& product, SpmmCase& c) {
  auto packed = cuda::FragmentCsr::Make(product.matrix(), {});
  Must(packed.ok(), "pack");
  const cuda::WgmmaOperands operands = {packed->get(),    static_cast<const float*>(product.x()),
                                        nullptr,          static_cast<float*>(product.y()),
                                        product.stride(), product.columns()};
  const auto time = [&](const cuda::WgmmaPlan& plan) {
    const auto work = [&] { cuda::QueueWgmma(operands, plan, timer_.queue()); };
    const double error = product.Error(work, timer_.queue());
    c.wgmma_error = std::max(c.wgmma_error, error);
    Expect(error, c, cuda::WgmmaPlanText(plan));
    return timer_.Time(work);
  };
  const cuda::WgmmaPlan plan = cuda::MakeWgmmaPlan(c.rows, c.cols, product.columns(), wgmma_device_);
  c.wgmma = time(plan);
  if (c.wgmma < c.ours) c.ours = c.wgmma, c.plan = cuda::WgmmaPlanText(plan);
  if (c.wgmma < c.best_plan) c.best_plan = c.wgmma, c.best_plan_text = cuda::WgmmaPlanText(plan);
  const LibraryTime in_parts = in_parts_.TimeSparse(product, **packed);
  c.sparse_parts = in_parts.us, c.sparse_parts_error = in_parts.error;
  Expect(in_parts.error, c, "the sparse product in parts", /*cuts_off=*/true);
  if (!options_.every_plan) return;
  for (const cuda::WgmmaPlan& other : cuda::AllWgmmaPlans(c.cols)) {
    const double us = time(other);
    c.plans[cuda::WgmmaPlanText(other)] = us;
    if (us < c.best_plan) c.best_plan = us, c.best_plan_text = cuda::WgmmaPlanText(other);
  }
}

CsrMatrix DrawMatrix(int64_t rows, int64_t cols, double sparsity, double cov) {
  std::mt19937 random(3);
  const double mean = static_cast<double>(cols) * (1 - sparsity);
  std::normal_distribution<double> length(mean, cov * mean);
  std::normal_distribution<float> value(0.0f, 0.1f);
  CsrMatrix matrix;
  matrix.rows = rows, matrix.cols = cols;
  matrix.row_offsets = {0};
  std::vector<uint32_t> columns(cols);
  std::iota(columns.begin(), columns.end(), 0u);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = std::clamp<int64_t>(std::llround(length(random)), 0, cols);
    for (int64_t i = 0; i < count; ++i) std::swap(columns[i], columns[i + random() % (cols - i)]);
    matrix.col_indices.insert(matrix.col_indices.end(), columns.begin(), columns.begin() + count);
    std::sort(matrix.col_indices.end() - count, matrix.col_indices.end());
    matrix.row_offsets.push_back(static_cast<uint32_t>(matrix.col_indices.size()));
  }
  matrix.values.resize(matrix.col_indices.size());
  for (float& v : matrix.values) v = value(random);
  return matrix;
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace swizzle::bench
