// The kernel table: what a kernel is, what problem it solves, and how it is called.
//
// A backend has one constexpr table of Kernel rows. The same rows drive selection, tests, benchmarks and
// --list-kernels. A row's name is `<op>_<format>_<dtype>_<isa or library>`; it is also the test parameter, the
// benchmark and the metric label. Rows and their functions are immutable and thread-safe; `run` may be called
// concurrently with different arguments.
#ifndef SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_H_
#define SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/backend/kernel_args.h"
#include "kernels/base/quantisation.h"
#include "kernels/base/status.h"
#include "kernels/format/attention_pattern.h"
#include "kernels/format/csr.h"
#include "kernels/format/dense.h"
#include "kernels/operator/problem.h"

namespace swizzle {

// Times that were measured with another version no longer count (plan/choose/tuning_cache.h): raise it with every
// change to what a kernel does or how fast.
inline constexpr int kKernelTableVersion = 11;

enum class Format : uint8_t { kNone, kDense, kCsr, kPattern };
std::string_view FormatName(Format format);

// The weight of one layer as the model holds it. Value type.
// kConv: matrix [output channels M, K], K = input channels * kernel_h * kernel_w in that order (ONNX's OIHW).
// kDepthwiseConv: matrix [channels, kernel_h * kernel_w], always dense.
// kEmbedding: matrix [table rows, channels], always dense, no bias. kLayerNorm: matrix [channels, 1], always dense.
// kSparseAttention: a pattern, and nothing else has one; no bias.
struct Weight {
  std::variant<DenseMatrix, CsrMatrix, AttentionPattern> matrix;
  std::vector<float> bias;  // [M], or empty
  // Whole numbers that stand for the values exactly, by rows; absent where there are no such.
  std::optional<Quantisation> quantisation = {};

  Format format() const {
    if (std::holds_alternative<AttentionPattern>(matrix)) return Format::kPattern;
    return std::holds_alternative<CsrMatrix>(matrix) ? Format::kCsr : Format::kDense;
  }
  int64_t rows() const;
  int64_t cols() const;
  int64_t nonzeros() const;
  size_t StoredBytes() const;  // of the matrix, as its format stores it, and the bias
  int64_t DenseBytes()
      const;  // had it been stored dense, with the bias; a pattern, which has no values, counts as it is
  DenseMatrix ToDense() const;  // a pattern has ones
};

struct KernelKey {
  Op op;
  Format weights;
  DType weight_dtype;
  Storage input, output;
};

struct Kernel {
  std::string_view name = {};
  KernelKey key = {};
  uint32_t required_features = 0;  // bits of Backend::features()
  // Whether this row can solve the problem; the key has been matched by the caller (op, storage, weight format).
  bool (*accepts)(const Problem&) = nullptr;
  // Makes the kernel's layout of `weight`, whose format may differ from the key's (it is then converted). Null for ops
  // without weights. The result serves every batch size of the layer: it may not depend on problem.*.batch. It is null
  // where problem.blocking, not the first, would make of this weight what the first makes. Rows that name one function
  // here, and have one type of output, read what it makes of either: it may depend on no layout.
  StatusOr<std::unique_ptr<PackedWeight>> (*prepare)(const Weight&, const Problem&) = nullptr;
  size_t (*workspace_bytes)(const Problem&) = nullptr;  // null: none
  // Solves the problem. Validates nothing: the loader and the planner did. On a GPU it only queues work: it neither
  // waits nor allocates, so that what it queues can be recorded.
  void (*run)(const KernelArgs&, Stream&) = nullptr;
  // The sizes of blocks that prepare can cut a weight into, by name, for reports: only a measurement tells which is
  // fastest. The first is what seems best by rule of thumb; none are named where there is no choice.
  std::span<const std::string_view> blockings = {};
};

// `problem` stored as this row reads and writes it, which is what the row's functions take: scales of operands that it
// has in real numbers are gone.
inline Problem AsRowSolves(const Kernel& kernel, Problem problem) {
  problem.from = kernel.key.input;
  problem.to = kernel.key.output;
  for (int i = 0; i < kMaxKernelInputs; ++i) {
    const Storage& storage = i < InputCount(problem) ? problem.from : problem.to;
    if (problem.inputs_as[i].dtype != storage.dtype) problem.inputs_as[i] = {};
  }
  std::optional<Quantised>& output = problem.epilogue.requantise;
  if (output && output->dtype != problem.to.dtype) output.reset();
  return problem;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_H_
