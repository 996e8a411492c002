// Rows of attention on a GPU where a batch's sequences are another's: what one request sends, no numbers
// included, reaches nobody else. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/base/half_bits.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/format/attention_pattern.h"
#include "kernels/reference/layout.h"

namespace swizzle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The largest difference from 1 that an average of ones may have in a type.
float Tolerance(DType dtype) { return dtype == DType::kBFloat16 ? 1e-2f : 2e-3f; }

class AttentionEdgesTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    auto backend = NewCudaBackend(0);
    if (!backend.ok()) GTEST_SKIP() << backend.status().message();
    backend_ = *std::move(backend);
    stream_ = *backend_->NewStream(0);
  }

  template <typename T>
  std::unique_ptr<Buffer> OnDevice(const std::vector<T>& values) {
    auto buffer = *backend_->Allocate(values.size() * sizeof(T));
    stream_->Copy(buffer->data(), values.data(), values.size() * sizeof(T));
    EXPECT_TRUE(stream_->Synchronize().ok());
    return buffer;
  }

  // What the row makes of `elements`, [token][channel], that are queries, keys and values alike; likewise.
  std::vector<float> Run(const Kernel& kernel, const Problem& problem, const std::vector<float>& elements,
                         const std::vector<int32_t>& begins, const PackedWeight* weight) {
    const Layout layout = problem.to.layout;
    const DType dtype = problem.to.dtype;
    std::vector<float> values(LayoutElements(problem.input, layout));
    reference::ToLayout(elements, problem.input, layout, kNan, values);
    std::vector<std::byte> bytes(values.size() * ElementBytes(dtype));
    if (dtype == DType::kFloat32) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    } else {
      StoreHalves(values, dtype, bytes.data());
    }
    const auto input = OnDevice(bytes), output = OnDevice(std::vector<std::byte>(bytes.size(), std::byte{0xFF}));
    const auto device_begins = OnDevice(begins);
    Sequences sequences;
    sequences.begins = {reinterpret_cast<const int32_t*>(device_begins->data()), begins.size()};
    const std::vector<Operand> inputs(3, {input->data(), dtype});
    KernelArgs args;
    args.problem = &problem;
    args.weight = weight;
    args.inputs = inputs;
    args.output = {output->data(), dtype};
    args.sequences = &sequences;
    const size_t workspace_bytes = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem);
    const auto workspace = *backend_->Allocate(std::max<size_t>(workspace_bytes, 1));
    args.workspace = {workspace->data(), workspace_bytes};
    stream_->Run([&] { kernel.run(args, *stream_); });
    stream_->Copy(bytes.data(), output->data(), bytes.size());
    EXPECT_TRUE(stream_->Synchronize().ok()) << kernel.name;
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t half = 0;
      if (dtype == DType::kFloat32) {
        std::memcpy(&values[i], bytes.data() + 4 * i, 4);
        continue;
      }
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      values[i] = dtype == DType::kFloat16 ? FloatOfHalf(half) : FloatOfBfloat16(half);
    }
    return reference::FromLayout(values, problem.output, layout);
  }

  // Tokens of sequence 1 are no numbers, all others ones. Sequences of no token and spare tokens end the batch.
  void Check(const Kernel& kernel, Problem problem, const std::vector<int32_t>& begins,
             const Weight* weight = nullptr) {
    problem.from = {kernel.key.input.layout, kernel.key.input.dtype};
    problem.to = {kernel.key.output.layout, kernel.key.output.dtype};
    if (kernel.accepts != nullptr && !kernel.accepts(problem)) return;
    const int64_t channels = problem.input.channels, tokens = problem.input.batch;
    std::vector<float> elements(tokens * channels, 1.0f);
    std::fill(elements.begin() + begins[1] * channels, elements.begin() + begins[2] * channels, kNan);
    std::unique_ptr<PackedWeight> packed;
    if (weight != nullptr) {
      if (kernel.holds != nullptr && !kernel.holds(*weight, problem)) return;
      packed = *backend_->Prepare(kernel, *weight, problem);
    }
    const std::vector<float> result = Run(kernel, problem, elements, begins, packed.get());
    ++checked_;
    for (int64_t token = 0; token < tokens; ++token) {
      const bool spare = token >= begins.back(), other = token >= begins[1] && token < begins[2];
      for (int64_t i = token * channels; i < (token + 1) * channels && !other; ++i) {
        const float value = result[i];
        ASSERT_TRUE(spare ? std::isfinite(value) : std::abs(value - 1) <= Tolerance(problem.to.dtype))
            << kernel.name << ", token " << token << ": " << value;
      }
    }
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
  int checked_ = 0;
};

TEST_P(AttentionEdgesTest, SequencesDoNotTouchEachOther) {
  constexpr int64_t kSpare = 11;
  // Tiles of two sequences on both sides of the one between; then so much that blocks get more queries.
  for (const std::vector<int32_t>& begins :
       {std::vector<int32_t>{0, 70, 131, 224, 224, 224}, std::vector<int32_t>{0, 301, 702, 1003}}) {
    Problem problem;
    problem.SetOp(Op::kAttention);
    problem.input = problem.output = {begins.back() + kSpare, 24 * GetParam()};
    problem.attention() = {24, 0.25f};
    for (const Kernel& kernel : backend_->kernels()) {
      const bool here = (kernel.required_features & ~backend_->features()) == 0;
      if (kernel.key.op == Op::kAttention && here) Check(kernel, problem, begins);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(checked_, 10);
}

// All keys of sequences that are no multiple of what kernels take at once.
TEST_P(AttentionEdgesTest, SequencesWithAPatternDoNotTouchEachOther) {
  constexpr int64_t kLength = 200;
  const AttentionPattern pattern = AttentionPattern::FromBand(kLength, kLength, false);
  Weight weight;
  weight.matrix = pattern;
  const std::vector<int32_t> begins = {0, kLength, 2 * kLength, 3 * kLength};
  Problem problem;
  problem.SetOp(Op::kSparseAttention);
  problem.input = problem.output = {begins.back(), 2 * GetParam()};
  problem.attention() = {2, 0.25f};
  problem.attention().length = kLength;
  problem.attention().nonzeros = pattern.nnz();
  for (const Kernel& kernel : backend_->kernels()) {
    const bool here = (kernel.required_features & ~backend_->features()) == 0;
    const DType dtype = kernel.key.input.dtype;
    const bool real = dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
    if (kernel.key.op == Op::kSparseAttention && here && real) Check(kernel, problem, begins, &weight);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(checked_, 4);
}

// By channels of a head.
INSTANTIATE_TEST_SUITE_P(Heads, AttentionEdgesTest, ::testing::Values(32, 64, 128));

}  // namespace
}  // namespace swizzle
