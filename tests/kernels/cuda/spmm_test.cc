// The GPU's sparse convolutions against the double-precision reference: the problems of kernel_cases.h, and rows of
// every length, long ones among them, laid over the device in every way that conv_csr.h knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "kernels/base/half.h"
#include "kernels/cuda/conv/csr/conv_csr.h"
#include "kernels/cuda/conv/parts/conv_csr_parts.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/runtime/cuda_stream.h"
#include "kernels/format/csr.h"
#include "kernels/reference/layout.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/kernel_cases.h"

namespace swizzle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Largest difference over the largest magnitude of the output (at least 1). Operands of half types are rounded before
// the reference sees them, so that what is left is the rounding of the result.
double Tolerance(DType dtype) { return dtype == DType::kFloat32 ? 1e-5 : dtype == DType::kFloat16 ? 0x1p-10 : 0x1p-7; }

uint16_t HalfBits(float value, DType dtype) {
  return dtype == DType::kFloat16 ? HalfOfFloat(value) : Bfloat16OfFloat(value);
}

float FloatOf(uint16_t bits, DType dtype) {
  return dtype == DType::kFloat16 ? FloatOfHalf(bits) : FloatOfBfloat16(bits);
}

float Rounded(float value, DType dtype) {
  return dtype == DType::kFloat32 ? value : FloatOf(HalfBits(value, dtype), dtype);
}

struct Gpu {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Stream> stream;
};

// Null where there is none; then `why` says so.
Gpu* TheGpu(std::string* why) {
  static std::string reason;
  static Gpu* const gpu = [] {
    auto backend = NewCudaBackend(0);
    if (!backend.ok()) {
      reason = std::string(backend.status().message());
      return static_cast<Gpu*>(nullptr);
    }
    auto made = std::make_unique<Gpu>();
    made->backend = *std::move(backend);
    made->stream = *made->backend->NewStream(0);
    return made.release();
  }();
  *why = reason;
  return gpu;
}

std::vector<float> DrawValues(int64_t count, DType dtype, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = Rounded(static_cast<float>(random() >> 8) / (1 << 23) - 1, dtype);
  for (float& value : values) {
    if (std::abs(value) < 1e-3f) value = 0.5f;  // normal numbers in fp16 too
  }
  return values;
}

CsrMatrix DrawCsr(const std::vector<int64_t>& lengths, int64_t cols, DType dtype, std::mt19937& random) {
  CsrMatrix matrix;
  matrix.rows = static_cast<int64_t>(lengths.size());
  matrix.cols = cols;
  matrix.row_offsets = {0};
  for (int64_t length : lengths) {
    std::set<uint32_t> columns;
    while (static_cast<int64_t>(columns.size()) < length) columns.insert(static_cast<uint32_t>(random() % cols));
    matrix.col_indices.insert(matrix.col_indices.end(), columns.begin(), columns.end());
    matrix.row_offsets.push_back(static_cast<uint32_t>(matrix.col_indices.size()));
  }
  matrix.values = DrawValues(static_cast<int64_t>(matrix.col_indices.size()), dtype, random);
  return matrix;
}

// Elements of `dtype` in device memory.
class DeviceValues {
 public:
  DeviceValues(Gpu& gpu, const std::vector<float>& values, DType dtype)
      : gpu_(gpu), dtype_(dtype), count_(values.size()), buffer_(*gpu.backend->Allocate(bytes())) {
    std::vector<std::byte> raw(bytes());
    for (size_t i = 0; i < count_; ++i) {
      if (dtype == DType::kFloat32) {
        std::memcpy(raw.data() + 4 * i, &values[i], 4);
      } else {
        const uint16_t half = HalfBits(values[i], dtype);
        std::memcpy(raw.data() + 2 * i, &half, 2);
      }
    }
    gpu_.stream->Copy(buffer_->data(), raw.data(), raw.size());
    EXPECT_TRUE(gpu_.stream->Synchronize().ok());
  }
  std::vector<float> Read() const {
    std::vector<std::byte> raw(bytes());
    gpu_.stream->Copy(raw.data(), buffer_->data(), raw.size());
    EXPECT_TRUE(gpu_.stream->Synchronize().ok());
    std::vector<float> values(count_);
    for (size_t i = 0; i < count_; ++i) {
      if (dtype_ == DType::kFloat32) {
        std::memcpy(&values[i], raw.data() + 4 * i, 4);
      } else {
        uint16_t half;
        std::memcpy(&half, raw.data() + 2 * i, 2);
        values[i] = FloatOf(half, dtype_);
      }
    }
    return values;
  }
  std::byte* data() const { return buffer_->data(); }
  size_t bytes() const { return count_ * ElementBytes(dtype_); }

 private:
  Gpu& gpu_;
  DType dtype_;
  size_t count_;
  std::unique_ptr<Buffer> buffer_;
};

std::vector<float> InRows(const std::vector<float>& nchw, const Extent& extent) {
  std::vector<float> rows(LayoutElements(extent, Layout::kRows));
  reference::ToLayout(nchw, extent, Layout::kRows, kNan, rows);
  return rows;
}

// A result is rounded once, and its sum of products, of about the root of their number, before a clamp makes it small.
// Tensor cores cut sums off (closeness.cc).
void ExpectClose(const std::vector<float>& actual, const reference::Result& expected, const Problem& problem,
                 bool cuts_off) {
  const double tolerance = Tolerance(problem.to.dtype) * (cuts_off ? 3 : 1);
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 1;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  const double sum = std::sqrt(static_cast<double>(problem.input.channels * problem.window().taps()));
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), tolerance * largest + 1e-6 * sum)
        << "NCHW element " << i << ": " << actual[i] << ", not " << expected[i];
  }
}

class SpmmTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    std::string why;
    gpu_ = TheGpu(&why);
    if (gpu_ == nullptr) GTEST_SKIP() << why;
    for (const Kernel& kernel : gpu_->backend->kernels()) {
      const bool here = (kernel.required_features & ~gpu_->backend->features()) == 0;
      const bool ours = kernel.name.starts_with("conv_rows_csr_") && kernel.key.input.dtype == GetParam();
      if (ours && here) kernels_.push_back(&kernel);
    }
    ASSERT_FALSE(kernels_.empty());
  }

  // Through a row of the kernel table, prepared at another batch size.
  void CheckRow(const Kernel& kernel, const Problem& problem, const Weight& weight, std::mt19937& random) {
    const DType dtype = GetParam();
    Problem prepared = problem;
    prepared.input.batch += 3, prepared.output.batch += 3;
    auto packed = gpu_->backend->Prepare(kernel, weight, prepared);
    ASSERT_TRUE(packed.ok()) << packed.status().message();
    EXPECT_GT((*packed)->bytes(), 0u);
    const auto input = DrawValues(problem.input.channels * problem.input.positions(), dtype, random);
    reference::Values residual;
    if (problem.epilogue.residual) {
      residual = DrawValues(problem.output.channels * problem.output.positions(), dtype, random);
    }
    const auto output = RunRow(kernel, problem, **packed, InRows(input, problem.input),
                               residual.empty() ? residual : InRows(residual, problem.output));
    const auto expected = reference::Solve(problem, &weight, {input, residual});
    ExpectClose(reference::FromLayout(output, problem.output, Layout::kRows), expected, problem,
                kernel.numerics == Numerics::kSplitFactors);
  }

  // What a row of the kernel table makes of these, in kRows; an empty residual is none.
  std::vector<float> RunRow(const Kernel& kernel, const Problem& problem, const PackedWeight& weight,
                            const std::vector<float>& input, const std::vector<float>& residual = {}) {
    const DType dtype = GetParam();
    const DeviceValues x(*gpu_, input, dtype);
    const DeviceValues r(*gpu_, residual.empty() ? std::vector<float>(1) : residual, dtype);
    const DeviceValues y(*gpu_, std::vector<float>(LayoutElements(problem.output, Layout::kRows), kNan), dtype);
    const DeviceValues workspace(*gpu_, std::vector<float>(kernel.workspace_bytes(problem) / 4 + 1, kNan),
                                 DType::kFloat32);
    const std::vector<Operand> inputs = {{x.data(), dtype}, {r.data(), dtype}};
    KernelArgs args;
    args.problem = &problem;
    args.weight = &weight;
    args.inputs = {inputs.data(), residual.empty() ? size_t{1} : size_t{2}};
    args.output = {y.data(), dtype};
    args.workspace = {workspace.data(), kernel.workspace_bytes(problem)};
    gpu_->stream->Run([&] { kernel.run(args, *gpu_->stream); });
    EXPECT_TRUE(gpu_->stream->Synchronize().ok());
    return y.Read();
  }

  bool HasRowsOfParts() const {
    return std::ranges::find(kernels_, Numerics::kSplitFactors, &Kernel::numerics) != kernels_.end();
  }

  Gpu* gpu_ = nullptr;
  std::vector<const Kernel*> kernels_;
};

Weight DrawWeight(const KernelCase& kernel_case, DType dtype, std::mt19937& random) {
  const Problem& problem = kernel_case.problem;
  const int64_t cols = problem.input.channels * problem.window().taps();
  DenseMatrix dense{problem.output.channels, cols, DrawValues(problem.output.channels * cols, dtype, random)};
  std::bernoulli_distribution zero(kernel_case.sparsity);
  for (float& value : dense.values) {
    if (zero(random)) value = 0;
  }
  Weight weight;
  if (kernel_case.bias) weight.bias = DrawValues(dense.rows, DType::kFloat32, random);
  if (random() % 2 == 0) {
    weight.matrix = CsrMatrix::FromDense(dense);
  } else {
    weight.matrix = std::move(dense);
  }
  return weight;
}

TEST_P(SpmmTest, AgreesWithReferenceOnKernelCases) {
  int seed = 0;
  std::map<const Kernel*, int> exercised;
  for (KernelCase kernel_case : KernelCases(Op::kConv)) {
    SCOPED_TRACE(CaseText(kernel_case));
    kernel_case.problem.from = kernel_case.problem.to = {Layout::kRows, GetParam()};
    std::mt19937 random(++seed);
    const Weight weight = DrawWeight(kernel_case, GetParam(), random);
    for (const Kernel* kernel : kernels_) {
      if (!kernel->accepts(kernel_case.problem)) continue;
      SCOPED_TRACE(std::string(kernel->name));
      CheckRow(*kernel, kernel_case.problem, weight, random);
      if (HasFatalFailure()) return;
      ++exercised[kernel];
    }
  }
  for (const Kernel* kernel : kernels_) EXPECT_GT(exercised[kernel], 0) << kernel->name;
}

struct LinearCase {
  std::string name;
  std::vector<int64_t> lengths;  // of rows
  int64_t cols, positions;
};

std::vector<int64_t> Uneven(int64_t rows, int64_t mean, int64_t outliers, int64_t longest) {
  std::vector<int64_t> lengths(rows);
  for (int64_t i = 0; i < rows; ++i) lengths[i] = i % 7 == 3 ? 0 : (i * 37) % (2 * mean + 1);
  for (int64_t i = 0; i < outliers; ++i) lengths[(i * 131) % rows] = longest;
  return lengths;
}

std::vector<LinearCase> LinearCases() {
  return {
      {"one entry", {1}, 1, 1},
      {"no entries", {0, 0, 0, 0, 0}, 9, 5},
      {"one position", Uneven(203, 60, 2, 900), 1021, 1},
      {"49 positions", Uneven(131, 200, 3, 2304), 2304, 49},
      {"outliers", Uneven(517, 20, 2, 1500), 1531, 196},
      {"small K", Uneven(66, 9, 1, 60), 61, 3136},
      {"small M", Uneven(3, 40, 1, 500), 577, 787},
      {"large K", Uneven(35, 30, 1, 4000), 70001, 33},
  };
}

// A case's layer with all that follows a sum, its drawn operands and what it makes of them.
struct LinearLayer {
  Problem problem;
  Weight weight;
  std::vector<float> input, residual;
  reference::Result expected;

  LinearLayer(const LinearCase& c, DType dtype, std::mt19937& random) {
    weight.matrix = DrawCsr(c.lengths, c.cols, dtype, random);
    const auto rows = static_cast<int64_t>(c.lengths.size());
    weight.bias = DrawValues(rows, DType::kFloat32, random);
    problem.input = {c.positions, c.cols};
    problem.output = {c.positions, rows};
    problem.epilogue = {-2.0f, kInfinity, true};
    problem.from = problem.to = {Layout::kRows, dtype};
    input = DrawValues(c.cols * c.positions, dtype, random);
    residual = DrawValues(rows * c.positions, dtype, random);
    expected = reference::Solve(problem, &weight, {input, residual});
  }
};

// Of FP32 alone.
class SpmmPartsTest : public SpmmTest {};

// Products of halves where a CTA has several tiles, the residual being Y.
TEST_P(SpmmPartsTest, ProductsInManyTiles) {
  if (!HasRowsOfParts()) GTEST_SKIP() << "no GPU of sm_90";
  constexpr int64_t kMostColumns = 32'768;  // AcceptsConvRowParts
  std::mt19937 random(13);
  for (const LinearCase& c : LinearCases()) {
    if (c.cols > kMostColumns) continue;
    SCOPED_TRACE(c.name);
    const LinearLayer drawn(c, DType::kFloat32, random);
    const auto& [problem, weight, input, residual, expected] = drawn;
    const auto& matrix = *weight.matrix.As<CsrMatrix>();
    const int64_t stride = RowStride(c.positions);
    const DeviceValues x(*gpu_, InRows(input, problem.input), DType::kFloat32);
    const DeviceValues parts(*gpu_, std::vector<float>(c.cols * stride + stride, kNan), DType::kFloat32);
    const cuda::PositionParts split = {parts.data(), reinterpret_cast<float*>(parts.data()) + c.cols * stride};
    auto packed = cuda::FragmentCsr::Make(matrix, weight.bias);
    ASSERT_TRUE(packed.ok());
    for (const auto queue : {&cuda::QueueCsrParts<64>, &cuda::QueueCsrParts<128>, &cuda::QueueCsrParts<192>}) {
      for (const int multiprocessors : {1, 3}) {
        const DeviceValues y(*gpu_, InRows(residual, problem.output), DType::kFloat32);
        auto* const values = reinterpret_cast<float*>(y.data());
        const cuda::CsrPartOperands operands = {packed->get(), split,       values,          values,
                                                stride,        c.positions, problem.epilogue};
        gpu_->stream->Run([&] {
          cuda::SplitRows(reinterpret_cast<const float*>(x.data()), c.cols, stride, split, *gpu_->stream);
          queue(operands, multiprocessors, cuda::CudaStream::From(*gpu_->stream).queue());
        });
        ASSERT_TRUE(gpu_->stream->Synchronize().ok());
        ExpectClose(reference::FromLayout(y.Read(), problem.output, Layout::kRows), expected, problem, true);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Every plan that fits gives the same sums.
TEST_P(SpmmTest, AgreesInEveryPlan) {
  const DType dtype = GetParam();
  const cuda::SpmmDevice device = cuda::CurrentSpmmDevice();
  std::mt19937 random(7);
  for (const LinearCase& c : LinearCases()) {
    SCOPED_TRACE(c.name);
    const LinearLayer drawn(c, dtype, random);
    const auto& [problem, weight, input, residual, expected] = drawn;
    const auto& matrix = *weight.matrix.As<CsrMatrix>();
    const DeviceValues x(*gpu_, InRows(input, problem.input), dtype), r(*gpu_, InRows(residual, problem.output), dtype);
    auto packed = cuda::QuadCsr::Make(matrix, weight.bias, dtype);
    ASSERT_TRUE(packed.ok());
    for (const cuda::SpmmPlan& plan : cuda::AllSpmmPlans((*packed)->counts(), device)) {
      SCOPED_TRACE(cuda::SpmmPlanText(plan));
      const DeviceValues y(*gpu_, std::vector<float>(LayoutElements(problem.output, Layout::kRows), kNan), dtype);
      const cuda::SpmmOperands operands = {packed->get(),          dtype,       x.data(),        r.data(), y.data(),
                                           RowStride(c.positions), c.positions, problem.epilogue};
      gpu_->stream->Run([&] { cuda::QueueSpmm(operands, plan, cuda::CudaStream::From(*gpu_->stream).queue()); });
      ASSERT_TRUE(gpu_->stream->Synchronize().ok());
      ExpectClose(reference::FromLayout(y.Read(), problem.output, Layout::kRows), expected, problem, false);
      if (HasFatalFailure()) return;
    }
  }
}

// Positions may be other requests': whatever one of them holds, the rest come out as they would beside anything else.
TEST_P(SpmmTest, PositionsDoNotTouchEachOther) {
  constexpr int64_t kPositions = 70, kCols = 200, kOdd = 5;
  const DType dtype = GetParam();
  std::mt19937 random(11);
  Weight weight;
  weight.matrix = DrawCsr(Uneven(90, 30, 1, 150), kCols, dtype, random);
  Problem problem;
  problem.input = {kPositions, kCols};
  problem.output = {kPositions, 90};
  problem.from = problem.to = {Layout::kRows, dtype};
  const auto input = DrawValues(kCols * kPositions, dtype, random);
  for (const Kernel* kernel : kernels_) {
    if (!kernel->accepts(problem)) continue;
    SCOPED_TRACE(std::string(kernel->name));
    const auto packed = gpu_->backend->Prepare(*kernel, weight, problem);
    ASSERT_TRUE(packed.ok()) << packed.status();
    std::vector<float> expected;
    for (const float odd : {0.25f, 60000.0f, kInfinity, kNan}) {
      auto rows = InRows(input, problem.input);
      for (int64_t k = 0; k < kCols; ++k) rows[k * RowStride(kPositions) + kOdd] = odd;
      auto output = RunRow(*kernel, problem, **packed, rows);
      for (int64_t m = 0; m < problem.output.channels; ++m) output[m * RowStride(kPositions) + kOdd] = 0;
      const auto values = reference::FromLayout(output, problem.output, Layout::kRows);
      if (expected.empty()) expected = values;
      EXPECT_EQ(values, expected) << "beside " << odd;
    }
  }
}

// Executors launch the same kernels side by side, for layers of all sizes.
TEST_P(SpmmTest, ThreadsDoNotTouchEachOther) {
  const DType dtype = GetParam();
  const DeviceValues x(*gpu_, std::vector<float>(440 * 128), dtype), y(*gpu_, std::vector<float>(40 * 128), dtype);
  std::vector<std::thread> threads;
  for (const int64_t cols : {64, 96, 320, 440}) {
    threads.emplace_back([this, cols, dtype, &x, &y] {
      const auto stream = *gpu_->backend->NewStream(0);
      std::mt19937 random(static_cast<uint32_t>(cols));
      const auto packed = cuda::QuadCsr::Make(DrawCsr(Uneven(40, 20, 1, 50), cols, dtype, random), {}, dtype);
      ASSERT_TRUE(packed.ok());
      for (const auto way : {cuda::SpmmWay::kTile128, cuda::SpmmWay::kTile256}) {
        const auto plan = cuda::MakeSpmmPlan(way, (*packed)->counts(), 128, cuda::CurrentSpmmDevice(), dtype);
        const cuda::SpmmOperands operands = {packed->get(), dtype, x.data(), nullptr, y.data(), 128, 128};
        for (int i = 0; i < 2000; ++i) {
          stream->Run([&] { cuda::QueueSpmm(operands, plan, cuda::CudaStream::From(*stream).queue()); });
          if (i % 100 == 99) {
            ASSERT_TRUE(stream->Synchronize().ok());
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(DTypes, SpmmTest, ::testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& test) { return std::string(DTypeName(test.param)); });

INSTANTIATE_TEST_SUITE_P(DTypes, SpmmPartsTest, ::testing::Values(DType::kFloat32),
                         [](const auto& test) { return std::string(DTypeName(test.param)); });

}  // namespace
}  // namespace swizzle
