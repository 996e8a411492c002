// Every row of the CPU backend's kernel table against the double-precision reference, on the problems of
// kernel_cases.h. Buffers are exactly as large as the contracts say and end in guard bytes; spare positions and
// workspaces start as NaN, so whatever leaks out of them shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/layout.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/kernel_cases.h"

namespace swizzle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Largest difference over the largest magnitude of the output (at least 1), for sums in fp32 of up to 900 terms.
constexpr double kFloat32Tolerance = 1e-5;
// Softmax, each value relative to itself: the exponential is good to 1e-6, the sum adds its own rounding.
constexpr double kSoftmaxTolerance = 5e-6;

// Bytes on a kBufferAlignment boundary, all ones (NaN as floats), followed by guard bytes.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes), data_(Allocate(bytes + kGuardBytes)) {
    std::memset(data_.get(), 0xff, bytes + kGuardBytes);
  }
  std::span<std::byte> bytes() { return {data_.get(), bytes_}; }
  std::span<float> floats() { return {reinterpret_cast<float*>(data_.get()), bytes_ / sizeof(float)}; }
  bool GuardIntact() const {
    return std::all_of(data_.get() + bytes_, data_.get() + bytes_ + kGuardBytes,
                       [](std::byte byte) { return byte == std::byte{0xff}; });
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  static constexpr size_t kGuardBytes = 4 * kBufferAlignment;
  static std::byte* Allocate(size_t bytes) {
    const size_t rounded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    return static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
  }

  size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

std::vector<float> DrawValues(int64_t count, float reach, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = reach * (static_cast<float>(random() >> 8) / (1 << 23) - 1);
  return values;
}

GuardedBuffer LaidOut(const std::vector<float>& nchw, const Extent& extent, Layout layout) {
  GuardedBuffer buffer(LayoutElements(extent, layout) * sizeof(float));
  reference::ToLayout(nchw, extent, layout, kNan, buffer.floats());
  return buffer;
}

// A weight of the case's sparsity; as CSR or dense, whatever the row's own format.
Weight DrawWeight(const KernelCase& kernel_case, bool csr, std::mt19937& random) {
  const Problem& problem = kernel_case.problem;
  const int64_t taps = int64_t{problem.window.kernel_h} * problem.window.kernel_w;
  DenseMatrix matrix;
  const bool embeds = problem.op == Op::kEmbedding;
  matrix.rows = embeds ? kernel_case.table_rows : problem.output.channels;
  matrix.cols = embeds ? problem.output.channels : problem.op == Op::kConv ? problem.input.channels * taps : taps;
  matrix.values = DrawValues(matrix.rows * matrix.cols, 1, random);
  std::bernoulli_distribution zero(kernel_case.sparsity);
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const int64_t row = i / matrix.cols;
    const bool empty_row = kernel_case.sparsity > 0 && matrix.rows > 2 && (row == 0 || row == matrix.rows / 2);
    if (zero(random) || empty_row) matrix.values[i] = 0;
  }
  Weight weight;
  if (kernel_case.bias) weight.bias = DrawValues(matrix.rows, 1, random);
  if (csr) {
    weight.matrix = CsrMatrix::FromDense(matrix);
  } else {
    weight.matrix = std::move(matrix);
  }
  return weight;
}

// The sequences of a case, and what their view points to.
class CaseSequences {
 public:
  CaseSequences(const KernelCase& kernel_case, std::mt19937& random) {
    const float bias = kernel_case.masked == Masked::kSomeKeys ? -10000.0f : -std::numeric_limits<float>::infinity();
    for (int32_t length : kernel_case.lengths) {
      const int32_t begin = begins_.back();
      begins_.push_back(begin + length);
      for (int32_t i = 0; i < length; ++i) {
        positions_.push_back(i + i / 4);  // tokens between were dropped
        key_bias_.push_back(kernel_case.masked == Masked::kAllKeys || random() % 2 == 0 ? bias : 0);
      }
      if (kernel_case.masked != Masked::kAllKeys) key_bias_[begin + random() % length] = 0;
    }
    if (kernel_case.masked == Masked::kNothing) key_bias_.clear();
    view_ = {begins_, positions_, key_bias_};
  }
  CaseSequences(const CaseSequences&) = delete;
  CaseSequences& operator=(const CaseSequences&) = delete;

  const Sequences* view() const { return &view_; }

 private:
  std::vector<int32_t> begins_ = {0};
  std::vector<int32_t> positions_;
  std::vector<float> key_bias_;
  Sequences view_;
};

// Ids below `limit`, INT32 in place of each float.
std::vector<float> DrawIds(int64_t count, int64_t limit, std::mt19937& random) {
  std::vector<float> ids(count);
  for (float& id : ids) id = std::bit_cast<float>(static_cast<int32_t>(random() % limit));
  return ids;
}

void ExpectClose(const Problem& problem, const std::vector<float>& actual, const reference::Result& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 1;
  for (double value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    if (static_cast<double>(actual[i]) == expected[i]) continue;  // infinities of empty windows too
    const double scale =
        problem.op == Op::kSoftmax ? kSoftmaxTolerance * expected[i] + 1e-37 : kFloat32Tolerance * largest;
    ASSERT_LE(std::abs(actual[i] - expected[i]), scale)
        << "NCHW element " << i << ": " << actual[i] << ", not " << expected[i];
  }
}

// The channels that round kBlocked16 up to its blocks must hold zeros.
void ExpectZeroPadding(const Extent& extent, std::span<const float> buffer) {
  const int64_t used = extent.channels % 16;
  if (used == 0) return;
  const int64_t blocks = extent.channels / 16 + 1;
  for (int64_t image = 0; image < extent.batch; ++image) {
    const float* block = buffer.data() + (image * blocks + blocks - 1) * extent.plane() * 16;
    for (int64_t i = 0; i < extent.plane() * 16; ++i) {
      if (i % 16 < used) continue;
      ASSERT_EQ(block[i], 0) << "padding channel " << i % 16 << " of image " << image;
    }
  }
}

Backend& TestBackend() {
  static const std::unique_ptr<Backend> backend = NewCpuBackend();
  return *backend;
}

Stream& TestStream(int threads) {
  static std::map<int, std::unique_ptr<Stream>> streams;
  std::unique_ptr<Stream>& stream = streams[threads];
  if (stream == nullptr) stream = *TestBackend().NewStream(threads);
  return *stream;
}

class KernelRowTest : public testing::TestWithParam<const Kernel*> {
 protected:
  const Kernel& kernel() const { return *GetParam(); }

  static Extent InputExtent(const Problem& problem, size_t index) {
    if (index == 0 || (problem.op == Op::kAttention && index == 1)) return problem.input;
    return problem.op == Op::kScale ? Extent{problem.output.batch, problem.output.channels} : problem.output;
  }

  // All operands of a case, as plain NCHW.
  static std::vector<reference::Values> DrawInputs(const KernelCase& kernel_case, std::mt19937& random) {
    const Problem& problem = kernel_case.problem;
    const float reach = problem.op == Op::kSoftmax ? 40 : problem.op == Op::kFunction ? 100 : 1;
    std::vector<reference::Values> inputs;
    const size_t count = InputCount(problem) + (problem.epilogue.residual ? 1 : 0);
    while (inputs.size() < count) {
      const Extent extent = InputExtent(problem, inputs.size());
      const bool first = inputs.empty();
      inputs.push_back(DrawValues(extent.positions() * extent.channels, first ? reach : 1, random));
      for (float& value : inputs.back()) value += kernel_case.mean;
    }
    if (problem.op == Op::kEmbedding && count > 0) {
      inputs[0] = DrawIds(problem.input.batch, kernel_case.table_rows, random);
    }
    return inputs;
  }

  // Prepared at another batch size than the one it runs with: a packed weight serves them all.
  std::unique_ptr<PackedWeight> Prepare(const Weight& weight, Problem problem) {
    if (kernel().prepare == nullptr) return nullptr;
    problem.input.batch = problem.output.batch = problem.input.batch + 3;
    auto packed = kernel().prepare(weight, problem);
    EXPECT_TRUE(packed.ok()) << packed.status().message();
    return packed.ok() ? *std::move(packed) : nullptr;
  }

  // Runs the row on laid-out inputs and returns its output as NCHW, checking guards and padding.
  std::vector<float> Run(const Problem& problem, const PackedWeight* weight,
                         const std::vector<reference::Values>& inputs, const Sequences* sequences, bool in_place) {
    std::vector<GuardedBuffer> buffers;
    std::vector<const float*> pointers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool residual = static_cast<int>(i) == InputCount(problem);
      const Layout layout = residual ? kernel().key.output : kernel().key.input;
      buffers.push_back(LaidOut(inputs[i], InputExtent(problem, i), layout));
      pointers.push_back(buffers.back().floats().data());
    }
    buffers.emplace_back(LayoutElements(problem.output, kernel().key.output) * sizeof(float));
    buffers.emplace_back(kernel().workspace_bytes == nullptr ? 0 : kernel().workspace_bytes(problem));
    GuardedBuffer& output = in_place ? buffers[0] : buffers[inputs.size()];
    KernelArgs args;
    args.problem = &problem;
    args.weight = weight;
    args.inputs = pointers;
    args.output = output.floats().data();
    args.workspace = buffers.back().bytes();
    args.sequences = sequences;
    Stream& stream = TestStream(problem.threads);
    kernel().run(args, stream);
    EXPECT_TRUE(stream.Synchronize().ok());
    for (GuardedBuffer& buffer : buffers) EXPECT_TRUE(buffer.GuardIntact());
    if (kernel().key.output == Layout::kBlocked16) ExpectZeroPadding(problem.output, output.floats());
    return reference::FromLayout(output.floats(), problem.output, kernel().key.output);
  }

  void Check(const KernelCase& kernel_case, int seed) {
    const Problem& problem = kernel_case.problem;
    std::mt19937 random(seed);
    const std::vector<reference::Values> inputs = DrawInputs(kernel_case, random);
    const CaseSequences sequences(kernel_case, random);
    const bool has_weight = kernel().prepare != nullptr;
    const Weight weight = has_weight ? DrawWeight(kernel_case, seed % 2 == 0, random) : Weight{};
    const auto packed = Prepare(weight, problem);
    if (has_weight) {
      ASSERT_NE(packed, nullptr);
      EXPECT_GT(packed->bytes(), 0u);
    }
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : reference::Values(); };
    const auto expected = reference::Solve(problem, &weight, input(0), input(1), input(2), sequences.view());
    ExpectClose(problem, Run(problem, packed.get(), inputs, sequences.view(), false), expected);
    if (WorksInPlace(problem.op)) {
      ExpectClose(problem, Run(problem, packed.get(), inputs, sequences.view(), true), expected);
    }
  }
};

TEST_P(KernelRowTest, AgreesWithReference) {
  if ((kernel().required_features & ~TestBackend().features()) != 0) GTEST_SKIP() << "not on this processor";
  int exercised = 0;
  int seed = 0;
  for (const KernelCase& kernel_case : KernelCases(kernel().key.op)) {
    ++seed;
    if (!kernel().accepts(kernel_case.problem)) continue;
    SCOPED_TRACE(CaseText(kernel_case));
    Check(kernel_case, seed);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    ++exercised;
  }
  RecordProperty("cases", exercised);
  EXPECT_GT(exercised, 0) << "no case of kernel_cases.cc exercises this row";
}

std::vector<const Kernel*> AllRows() {
  std::vector<const Kernel*> rows;
  for (const Kernel& kernel : TestBackend().kernels()) rows.push_back(&kernel);
  return rows;
}

std::string RowName(const testing::TestParamInfo<const Kernel*>& row) { return std::string(row.param->name); }

INSTANTIATE_TEST_SUITE_P(Cpu, KernelRowTest, testing::ValuesIn(AllRows()), RowName);

TEST(KernelTable, NamesAreUnique) {
  std::map<std::string_view, int> count;
  for (const Kernel& kernel : TestBackend().kernels()) EXPECT_EQ(++count[kernel.name], 1) << kernel.name;
}

}  // namespace
}  // namespace swizzle
