// The kernel table: what a kernel is, what problem it solves, and how it is called.
//
// A backend has one constexpr table of Kernel rows. The same rows drive selection, tests, benchmarks and
// --list-kernels. A row's name is `<op>_<format>_<dtype>_<isa or library>`; it is also the test parameter, the
// benchmark and the metric label, and nothing parses it: what there is to know of a row stands in its other fields.
// Rows and their functions are immutable and thread-safe; `run` may be called concurrently with different arguments.
#ifndef SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_H_
#define SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/backend/kernel_args.h"
#include "kernels/backend/numerics.h"
#include "kernels/base/quantisation.h"
#include "kernels/base/status.h"
#include "kernels/format/format.h"
#include "kernels/format/weight.h"
#include "kernels/operator/problem.h"

namespace swizzle {

using SharedWeight = std::shared_ptr<const PackedWeight>;

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
  // Whether this row can hold the weight, where that takes more than its format (vectors of rows, n:m, padding); the
  // problem has been accepted. Null: any weight of the key's format. It may look at every nonzero: Candidates asks each
  // function once a layer.
  bool (*holds)(const Weight&, const Problem&) = nullptr;
  // What a form is for this problem that prepare made of the same weight, for one which differs in its planes alone. It
  // shares what it can, and its bytes() are what it doesn't. Null: prepare has to make it anew.
  StatusOr<SharedWeight> (*for_plane)(const SharedWeight& form, const Problem& problem) = nullptr;
  // Whether it solves this problem with any of its inputs, the residual among them, or its output, in kNhwc among the
  // channels of a wider activation (BasicOperand::pitch). Null: no.
  bool (*reads_pitched)(const Problem&) = nullptr;
  bool (*writes_pitched)(const Problem&) = nullptr;
  // What the rows of one kernel that is compiled for several instruction sets have in common; empty where it is not.
  std::string_view family = {};
  Numerics numerics = Numerics::kOfTypes;  // which not every plan may have
  // How long it takes goes by where the first input is zero. A candidate only where calibration data told
  // (Problem::input_zeros), and chosen only by times measured with such zeros.
  bool skips_input_zeros = false;
};

// Kernel::for_plane of forms that are the same for every plane.
inline StatusOr<SharedWeight> SameForAnyPlane(const SharedWeight& form, const Problem&) { return form; }

// `problem` stored as this row reads and writes it, which is what the row's functions take: scales of operands that it
// has in real numbers are gone, and so are zeros of the input that it doesn't skip.
inline Problem AsRowSolves(const Kernel& kernel, Problem problem) {
  problem.from = kernel.key.input;
  problem.to = kernel.key.output;
  for (int i = 0; i < kMaxKernelInputs; ++i) {
    const Storage& storage = i < InputCount(problem) ? problem.from : problem.to;
    if (problem.inputs_as[i].dtype != storage.dtype) problem.inputs_as[i] = {};
  }
  std::optional<Quantised>& output = problem.epilogue.requantise;
  if (output && output->dtype != problem.to.dtype) output.reset();
  if (!kernel.skips_input_zeros) problem.input_zeros.reset();
  return problem;
}

// Tables write rows down in place; this adds to one what few have.
constexpr Kernel Computing(Numerics numerics, Kernel kernel) {
  kernel.numerics = numerics;
  return kernel;
}
constexpr Kernel Pitched(Kernel kernel, bool (*takes)(const Problem&)) {
  kernel.reads_pitched = kernel.writes_pitched = takes;
  return kernel;
}
constexpr Kernel Pitched(Kernel kernel) { return Pitched(kernel, kernel.accepts); }
constexpr Kernel SkippingInputZeros(Kernel kernel) {
  kernel.skips_input_zeros = true;
  return kernel;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_KERNEL_TABLE_H_
