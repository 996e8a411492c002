#include "tests/kernels/row_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>

#include "kernels/backend/select.h"
#include "kernels/base/half_bits.h"
#include "kernels/format/csr.h"
#include "kernels/operator/count_zeros.h"
#include "kernels/reference/layout.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/byte_operands.h"
#include "tests/kernels/closeness.h"
#include "tests/kernels/pitched_operands.h"
#include "tests/kernels/pooled_result.h"
#include "tests/kernels/position_bytes.h"
#include "tests/kernels/sequence_cases.h"
#include "tests/kernels/test_memory.h"

namespace swizzle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool HasBytes(const Kernel& kernel) {
  return kernel.key.input.dtype == DType::kUint8 || kernel.key.output.dtype == DType::kUint8;
}

float Rounded(float value, DType dtype) {
  return IsHalf(dtype) ? FloatOfHalfBits(HalfBits(value, dtype), dtype) : value;
}

// As an operand of the row: one that rounds to TF32 or bfloat16 gets what has its bits of mantissa already.
float Rounded(float value, DType dtype, const Kernel& kernel) {
  if (kernel.numerics == Numerics::kBfloat16Factors) dtype = DType::kBFloat16;
  if (kernel.numerics == Numerics::kTf32Factors) return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & ~0x1fffu);
  return Rounded(value, dtype);
}

std::vector<float> DrawValues(int64_t count, float reach, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = reach * (static_cast<float>(random() >> 8) / (1 << 23) - 1);
  return values;
}

// Zeros what reads other groups' channels.
void KeepGroups(DenseMatrix& matrix, int64_t groups) {
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const int64_t row_group = i / matrix.cols * groups / matrix.rows;
    if (i % matrix.cols * groups / matrix.cols != row_group) matrix.values[i] = 0;
  }
}

// A weight of the case's sparsity; as CSR or dense, whatever the row's own format.
Weight DrawWeight(const KernelCase& kernel_case, const Kernel& kernel, bool csr, std::mt19937& random) {
  const Problem& problem = kernel_case.problem;
  if (problem.op == Op::kSparseAttention) return {kernel_case.pattern, {}};
  if (problem.op == Op::kBiasedAttention) return DrawPairBiases(kernel_case, random);
  if (problem.op == Op::kDisentangledAttention) return DrawPlaceVectors(kernel_case, random);
  if (problem.op == Op::kPermuteTokens) return DrawPlaces(kernel_case, random);
  const int64_t taps = IsWindowed(problem.op) ? problem.window().taps() : 1;
  DenseMatrix matrix;
  const bool is_table = ReadsRowsOfTokens(problem.op);
  const int64_t table_columns = problem.op == Op::kRotary ? 2 * problem.rotation().pairs : problem.output.channels;
  matrix.rows = is_table ? kernel_case.table_rows : problem.output.channels;
  const bool of_product = problem.op == Op::kLayerNorm && problem.epilogue.residual;
  const bool multiplies = problem.op == Op::kConv || of_product;
  matrix.cols = is_table ? table_columns : multiplies ? problem.input.channels * taps : taps;
  matrix.values = DrawValues(matrix.rows * matrix.cols, 1, random);
  std::bernoulli_distribution zero(kernel_case.sparsity);
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const int64_t row = i / matrix.cols;
    const int64_t vector_row = row % kernel_case.vector_rows;
    const bool draws_empty_rows = kernel_case.sparsity > 0 && matrix.rows > 2 && kernel_case.vector_rows == 1;
    const bool empty_row = draws_empty_rows && (row == 0 || row == matrix.rows / 2);
    const int64_t in_block = i % matrix.cols / taps % kernel_case.block_channels * taps;
    const bool copies = vector_row > 0 || in_block > 0;
    const bool is_zero =
        copies ? matrix.values[i - vector_row * matrix.cols - in_block] == 0 : zero(random) || empty_row;
    matrix.values[i] = is_zero ? 0 : Rounded(matrix.values[i], kernel.key.weight_dtype, kernel);
  }
  if (kernel_case.shuffled) ShuffleRows(matrix, random);
  if (kernel_case.groups > 1) KeepGroups(matrix, kernel_case.groups);
  if (kernel_case.two_of_four) KeepTwoOfFour(matrix, random);
  Weight weight;
  if (kernel_case.bias) weight.bias = DrawValues(matrix.rows * (of_product ? 3 : 1), 1, random);
  if (kernel.key.weight_dtype == DType::kInt8) RoundToBytes(matrix, weight, kernel_case.wide_bytes);
  if (csr) {
    weight.matrix = CsrMatrix::FromDense(matrix);
  } else {
    weight.matrix = std::move(matrix);
  }
  return weight;
}

// The sequences of a case, what their view points to, and a view of the same in the backend's memory.
class CaseSequences {
 public:
  CaseSequences(Backend& backend, Stream& stream, const KernelCase& kernel_case, std::mt19937& random) {
    Draw(kernel_case, random);
    view_ = {begins_, positions_, key_bias_};
    backend_view_ = {Placed(backend, stream, begins_), Placed(backend, stream, positions_),
                     Placed(backend, stream, key_bias_)};
    if (!HasHostMemory(backend)) backend_view_.owners = Placed(backend, stream, owners_);
  }
  CaseSequences(const CaseSequences&) = delete;
  CaseSequences& operator=(const CaseSequences&) = delete;

  const Sequences* view() const { return &view_; }
  const Sequences* backend_view() const { return &backend_view_; }

 private:
  void Draw(const KernelCase& kernel_case, std::mt19937& random) {
    const float bias = kernel_case.masked == Masked::kSomeKeys ? -10000.0f : -std::numeric_limits<float>::infinity();
    for (int32_t length : kernel_case.lengths) {
      const int32_t begin = begins_.back();
      for (int32_t i = 0; i < length; ++i) {
        owners_.push_back(static_cast<int32_t>(begins_.size()) - 1);
        positions_.push_back(kernel_case.problem.op == Op::kPermuteTokens ? i : i + i / 4);  // tokens were dropped
        key_bias_.push_back(kernel_case.masked == Masked::kAllKeys || random() % 2 == 0 ? bias : 0);
      }
      begins_.push_back(begin + length);
      if (kernel_case.masked != Masked::kAllKeys) key_bias_[begin + random() % length] = 0;
    }
    if (kernel_case.masked == Masked::kNothing) key_bias_.clear();
  }

  template <typename T>
  std::span<const T> Placed(Backend& backend, Stream& stream, const std::vector<T>& values) {
    if (values.empty()) return {};
    memory_.emplace_back(backend, values.size() * sizeof(T));
    std::memcpy(memory_.back().host().data(), values.data(), values.size() * sizeof(T));
    memory_.back().ToBackend(stream);
    return {reinterpret_cast<const T*>(memory_.back().data()), values.size()};
  }

  std::vector<int32_t> begins_ = {0};
  std::vector<int32_t> positions_, owners_;
  std::vector<float> key_bias_;
  std::vector<TestMemory> memory_;
  Sequences view_, backend_view_;
};

// Ids below `limit`: the bits of INT32, which memory of either type keeps.
std::vector<float> DrawIds(int64_t count, int64_t limit, std::mt19937& random) {
  std::vector<float> ids(count);
  for (float& id : ids) id = std::bit_cast<float>(static_cast<int32_t>(random() % limit));
  return ids;
}

// Of inputs whose zeros a row skips: runs that are full or empty, some of everything, nearly nothing, nothing.
constexpr InputZeros kZeros[] = {{0, 0, .5, .5}, {.3, .5, .7, .9}, {.9, .95, .99, .995}, {1, 1, 1, 1}};

void PutZeros(const InputZeros& zeros, const Extent& extent, reference::Values& nchw) {
  DrawZeros(zeros, extent, [&](const DrawnRun& run) {
    float* const to = nchw.data() + (run.row * extent.channels + run.channel) * extent.plane() + run.position;
    for (int i = 0; i < run.count; ++i) to[i] = (run.held >> i & 1) != 0 ? to[i] : 0.0f;
  });
}

// All operands of a case, as plain NCHW.
std::vector<reference::Values> DrawInputs(const KernelCase& kernel_case, const Kernel& kernel, std::mt19937& random) {
  const Problem& problem = kernel_case.problem;
  const float reach = problem.op == Op::kSoftmax ? 40 : problem.op == Op::kFunction ? 100 : 1;
  const size_t operands = InputCount(problem);
  std::vector<reference::Values> inputs;
  while (inputs.size() < operands + (problem.epilogue.residual ? 1 : 0)) {
    const Extent extent = InputExtent(problem, static_cast<int>(inputs.size()));
    const DType dtype = inputs.size() < operands ? kernel.key.input.dtype : kernel.key.output.dtype;
    inputs.push_back(DrawValues(extent.positions() * extent.channels, inputs.empty() ? reach : 1, random));
    for (float& value : inputs.back()) value = Rounded(value + kernel_case.mean, dtype, kernel);
    if (dtype != DType::kUint8) continue;
    const Quantised& as = problem.inputs_as[inputs.size() - 1];
    for (float& value : inputs.back())
      value = static_cast<float>(static_cast<int>(random() % 256) - as.zero_point) * as.scale;
  }
  if (problem.input_zeros) PutZeros(*problem.input_zeros, problem.input, inputs[0]);
  if (kernel.key.weight_dtype == DType::kInt8 && !HasBytes(kernel)) {
    RoundToPositionBytes(problem.input, random, inputs[0]);
  }
  if (problem.op == Op::kEmbedding && operands > 0) {
    inputs[0] = DrawIds(problem.input.batch, kernel_case.table_rows, random);
  }
  return inputs;
}

// Steps of an output of bytes.
void ExpectSteps(const Problem& problem, const std::vector<float>& actual, const reference::Result& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  // Functions and norms of single precision may fall on the other side of half a step.
  const bool inexact = problem.op == Op::kFunction || problem.op == Op::kLayerNorm || problem.epilogue.function;
  const float tolerance = problem.op == Op::kAveragePool || inexact ? 1 : 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const float step = StepOf(expected[i], *problem.epilogue.requantise);
    ASSERT_LE(std::abs(actual[i] - step), tolerance)
        << "NCHW element " << i << ": step " << actual[i] << ", not " << step << ", of " << expected[i];
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

// One row on one case.
class CaseRun {
 public:
  CaseRun(Backend& backend, Stream& stream, const Kernel& kernel, const SeededCase& seeded)
      : backend_(backend), stream_(stream), kernel_(kernel), case_(seeded.kernel_case), seed_(seeded.seed) {}

  // Whether there is something to check: a weight that the row holds.
  bool Check() {
    std::mt19937 random(seed_);
    inputs_ = DrawInputs(case_, kernel_, random);
    const CaseSequences sequences(backend_, stream_, case_, random);
    const bool has_weight = kernel_.prepare != nullptr;
    const Weight weight = has_weight ? DrawWeight(case_, kernel_, seed_ % 2 == 0, random) : Weight{};
    if (kernel_.holds != nullptr && !kernel_.holds(weight, problem())) return false;
    CheckWith(weight, sequences);
    return true;
  }

  int blockings_seen() const { return blockings_seen_; }  // other than the first

 private:
  void CheckWith(const Weight& weight, const CaseSequences& sequences) {
    const bool has_weight = kernel_.prepare != nullptr;
    const auto packed = Prepare(weight, 0);
    if (has_weight) {
      ASSERT_NE(packed, nullptr);
      EXPECT_GT(packed->bytes(), 0u);
    }
    expected_ = reference::Solve(problem(), &weight, inputs_, sequences.view());
    largest_ = LargestOf(expected_);
    // Sums are rounded before a function that is flat where they are large, and by libraries before they are clamped.
    if (problem().epilogue.function || (IsHalf(PrecisionOf(kernel_)) && problem().epilogue.Clamps())) {
      Problem sums = problem();
      sums.epilogue = {.residual = problem().epilogue.residual};
      largest_ = LargestOf(reference::Solve(sums, &weight, inputs_, sequences.view()));
    }
    Run(packed.get(), sequences.backend_view(), false);
    if (WorksInPlace(problem().op) && kernel_.key.input == kernel_.key.output) {
      Run(packed.get(), sequences.backend_view(), true);
    }
    reads_pitched_ = kernel_.reads_pitched != nullptr && kernel_.reads_pitched(problem());
    writes_pitched_ = kernel_.writes_pitched != nullptr && kernel_.writes_pitched(problem());
    if (reads_pitched_ || writes_pitched_) {
      SCOPED_TRACE("pitched");
      Run(packed.get(), sequences.backend_view(), false);
    }
    reads_pitched_ = writes_pitched_ = false;
    for (size_t p = 1; p < kernel_.blockings.size(); ++p) {
      const auto other = Prepare(weight, static_cast<int>(p));
      if (other == nullptr) continue;
      SCOPED_TRACE(kernel_.blockings[p]);
      ++blockings_seen_;
      Run(other.get(), sequences.backend_view(), false);
    }
  }

  const Problem& problem() const { return case_.problem; }

  // Prepared at another batch size than the one it runs with: a packed weight serves them all.
  std::unique_ptr<PackedWeight> Prepare(const Weight& weight, int blocking) {
    if (kernel_.prepare == nullptr) return nullptr;
    Problem other = problem();
    other.blocking = blocking;
    other.input.batch = other.output.batch = problem().input.batch + 3;
    auto packed = backend_.Prepare(kernel_, weight, other);
    EXPECT_TRUE(packed.ok()) << packed.status().message();
    return packed.ok() ? *std::move(packed) : nullptr;
  }

  // Runs the row on laid-out inputs; checks its output, guards and padding.
  void Run(const PackedWeight* weight, const Sequences* sequences, bool in_place) {
    std::vector<TestMemory> buffers;
    std::vector<Operand> operands;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      buffers.push_back(LaidOut(i));
      const Quantised& as = problem().inputs_as[i];
      const auto [pitch, offset] =
          PitchAndOffset(reads_pitched_, InputExtent(problem(), static_cast<int>(i)), InputStorage(i));
      operands.push_back({buffers.back().data() + offset, InputStorage(i).dtype, as.scale, as.zero_point, pitch});
    }
    const auto [pitch, offset] = PitchAndOffset(writes_pitched_, problem().output, problem().to);
    buffers.emplace_back(backend_, pitch == 0
                                       ? StorageBytes(problem().output, problem().to)
                                       : problem().output.positions() * pitch * ElementBytes(problem().to.dtype));
    buffers.emplace_back(backend_, kernel_.workspace_bytes == nullptr ? 0 : kernel_.workspace_bytes(problem()));
    for (TestMemory& buffer : buffers) buffer.ToBackend(stream_);
    TestMemory& output = in_place ? buffers[0] : buffers[inputs_.size()];
    KernelArgs args;
    args.problem = &problem();
    args.weight = weight;
    args.inputs = operands;
    const Quantised output_as = problem().epilogue.requantise.value_or(Quantised());
    args.output = {output.data() + offset, problem().to.dtype, output_as.scale, output_as.zero_point, pitch};
    args.workspace = {buffers.back().data(), buffers.back().bytes()};
    args.sequences = sequences;
    const auto work = [&] { kernel_.run(args, stream_); };
    stream_.Run(work);
    ExpectDone(output, buffers);
    if (HasHostMemory(backend_) || in_place || ::testing::Test::HasFailure()) return;
    SCOPED_TRACE("recorded");
    const auto recording = static_cast<DeviceStream&>(stream_).Record(work);
    ASSERT_TRUE(recording.ok()) << recording.status().message();
    for (TestMemory* buffer : {&output, &buffers.back()}) {
      buffer->Poison();
      buffer->ToBackend(stream_);
    }
    ASSERT_TRUE((*recording)->Replay().ok());
    ExpectDone(output, buffers);
  }

  // Of an operand that is to be within a wider one, where it can: bytes from that one's beginning.
  static std::pair<int64_t, size_t> PitchAndOffset(bool pitched, const Extent& extent, Storage storage) {
    if (!pitched || !CanBePitched(extent, storage)) return {0, 0};
    return {PitchOf(extent, storage.dtype), kPitchAlignment};
  }

  Storage InputStorage(size_t input) const {
    return static_cast<int>(input) < InputCount(problem()) ? problem().from : problem().to;
  }

  TestMemory LaidOut(size_t input) {
    const Storage storage = InputStorage(input);
    const Extent extent = InputExtent(problem(), static_cast<int>(input));
    std::vector<float> values(LayoutElements(extent, storage.layout));
    reference::Values elements = inputs_[input];
    const bool bytes = storage.dtype == DType::kUint8;
    if (bytes) {
      for (float& element : elements) element = StepOf(element, problem().inputs_as[input]);
    }
    reference::ToLayout(elements, extent, storage.layout, bytes ? 255 : kNan, values);
    if (reads_pitched_ && CanBePitched(extent, storage)) values = Widened(values, extent, storage.dtype);
    TestMemory memory(backend_, values.size() * ElementBytes(storage.dtype));
    memory.Fill(values, storage.dtype);
    return memory;
  }

  void ExpectDone(TestMemory& output, std::vector<TestMemory>& buffers) {
    for (TestMemory& buffer : buffers) buffer.FromBackend(stream_);
    const Status status = stream_.Synchronize();
    ASSERT_TRUE(status.ok()) << status.message();
    for (const TestMemory& buffer : buffers) EXPECT_TRUE(buffer.GuardIntact());
    std::vector<float> values = output.Values(problem().to.dtype);
    if (writes_pitched_ && CanBePitched(problem().output, problem().to)) {
      values = Narrowed(values, problem().output, problem().to.dtype);
    }
    if (problem().to.layout == Layout::kBlocked16) ExpectZeroPadding(problem().output, values);
    const Extent stored = problem().to.pooled ? PooledExtent(problem().output) : problem().output;
    const std::vector<float> actual = reference::FromLayout(values, stored, problem().to.layout);
    if (problem().to.dtype == DType::kUint8) return ExpectSteps(problem(), actual, expected_);
    ExpectClose(kernel_, actual, problem().to.pooled ? Pooled(expected_, problem().output) : expected_, largest_);
  }

  Backend& backend_;
  Stream& stream_;
  const Kernel& kernel_;
  const KernelCase& case_;
  const int seed_;
  std::vector<reference::Values> inputs_;
  reference::Result expected_;
  bool reads_pitched_ = false, writes_pitched_ = false;  // in this run
  double largest_ = 1;                                   // of what is rounded on the way there
  int blockings_seen_ = 0;
};

}  // namespace

std::vector<SeededCase> CasesOf(const Kernel& kernel) {
  std::vector<SeededCase> cases;
  std::vector<KernelCase> drawn = KernelCases(kernel.key.op);
  std::ranges::move(FusedCases(kernel.key.op), std::back_inserter(drawn));
  int seed = 0;
  for (KernelCase& kernel_case : drawn) {
    ++seed;
    const Problem& problem = kernel_case.problem;
    if (kernel.skips_input_zeros) kernel_case.problem.input_zeros = kZeros[seed % std::size(kZeros)];
    kernel_case.problem = AsRowSolves(kernel, HasBytes(kernel) ? Quantise(problem) : problem);
    if (IsHalf(PrecisionOf(kernel))) kernel_case.mean /= 125;  // 1000 would leave no differences
    if (!kernel.accepts(kernel_case.problem)) continue;
    cases.push_back({kernel_case, seed});
    if (kernel.key.weight_dtype != DType::kInt8 || seed % 3 != 1) continue;
    cases.push_back({kernel_case, seed});
    cases.back().kernel_case.wide_bytes = true;
  }
  return cases;
}

bool HoldsWeightOf(const Kernel& kernel, const SeededCase& seeded) {
  if (kernel.holds == nullptr) return true;
  std::mt19937 random(seeded.seed);
  DrawInputs(seeded.kernel_case, kernel, random);
  return kernel.holds(DrawWeight(seeded.kernel_case, kernel, seeded.seed % 2 == 0, random), seeded.kernel_case.problem);
}

Stream& RowChecker::StreamOf(int threads) {
  std::unique_ptr<Stream>& stream = streams_[threads];
  if (stream == nullptr) stream = *backend_.NewStream(threads);
  return *stream;
}

void RowChecker::Check(const Kernel& kernel, size_t every, size_t from) {
  int blockings_seen = 0, checked = 0;
  std::vector<SeededCase> cases = CasesOf(kernel);
  size_t chosen = 0;
  for (size_t i = from % every; i < cases.size(); i += every) std::swap(cases[chosen++], cases[i]);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (i >= chosen && checked > 0) break;
    const SeededCase& seeded = cases[i];
    SCOPED_TRACE(CaseText(seeded.kernel_case));
    const int threads = HasHostMemory(backend_) ? seeded.kernel_case.problem.threads : 1;
    Stream& stream = StreamOf(threads);
    CaseRun run(backend_, stream, kernel, seeded);
    if (HasHostMemory(backend_)) static_cast<HostStream&>(stream).RunSerially(seeded.seed % 3 == 0);
    checked += run.Check();
    blockings_seen += run.blockings_seen();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(checked, 0) << "no case has a weight that this row holds";
  if (!kernel.blockings.empty() && every == 1) {
    EXPECT_GT(blockings_seen, 0) << "no case has a weight that is packed in other ways";
  }
}

}  // namespace swizzle
