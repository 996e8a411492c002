#include "tests/kernels/kernel_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/operator/print.h"
#include "tests/kernels/layer_shapes.h"
#include "tests/kernels/plane_cases.h"
#include "tests/kernels/sequence_cases.h"

namespace swizzle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The bias, and what follows the sum.
struct Tail {
  bool bias;
  Epilogue epilogue;
};

constexpr Tail kTails[] = {
    {false, {-kInfinity, kInfinity, false}},
    {true, {-kInfinity, kInfinity, false}},
    {true, {0, kInfinity, false}},
    {false, {0, 6, false}},
    {false, {-kInfinity, kInfinity, true}},
    {true, {0, kInfinity, true}},
    {true, {-0.5f, 0.75f, true}},
};
constexpr double kSparsities[] = {0, 0.5, 0.9, 1};

int64_t OutputSize(int64_t input, int64_t kernel, int64_t stride, int64_t pads, int64_t dilation) {
  return (input + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

Extent OutputExtent(const LayerShape& shape) {
  const Window& window = shape.window;
  return {shape.input.batch, shape.output_channels == 0 ? shape.input.channels : shape.output_channels,
          OutputSize(shape.input.height, window.kernel_h, window.stride_h, window.pad_top + window.pad_bottom,
                     window.dilation_h),
          OutputSize(shape.input.width, window.kernel_w, window.stride_w, window.pad_left + window.pad_right,
                     window.dilation_w)};
}

std::vector<LayerShape> ShapesOf(Op op) {
  switch (op) {
    case Op::kConv:
      return ConvShapes();
    case Op::kDepthwiseConv:
      return DepthwiseShapes();
    case Op::kMaxPool:
    case Op::kAveragePool:
      return PoolShapes();
    default:
      return PlaneShapes();
  }
}

// The tails that mean something for an op: only sums have a bias and a residual, only some ops clamp.
std::vector<Tail> TailsOf(Op op) {
  if (TraitsOf(op).Has(OpTraits::kAddsResidual)) return {std::begin(kTails), std::end(kTails)};
  if (!TraitsOf(op).Has(OpTraits::kClamps)) return {kTails[0]};
  return {kTails[0], {false, {0, kInfinity, false}}, {false, {-0.25f, 0.75f, false}}};
}

KernelCase MakeCase(Op op, const LayerShape& shape, const Tail& tail, double sparsity, int threads) {
  Problem problem{{op, AttributesOf(op), tail.epilogue}, shape.input, OutputExtent(shape), threads};
  if (IsWindowed(op)) problem.window() = shape.window;
  if (op == Op::kTranspose) problem.output = {shape.input.batch, shape.input.plane(), 1, shape.input.channels};
  return {problem, tail.bias, sparsity};
}

constexpr Function kFunctions[] = {
    {FunctionKind::kSigmoid, 0, 0},
    {FunctionKind::kSilu, 0, 0},
    {FunctionKind::kHardSigmoid, 0.7f, 0.4f},
    {FunctionKind::kHardSwish, 1.0f / 6, 0.5f},
    {FunctionKind::kLeakyRelu, 0.1f, 0},
    {FunctionKind::kTanh, 0, 0},
    {FunctionKind::kGelu, 0, 0},
    {FunctionKind::kGeluTanh, 0, 0},
};
static_assert(std::size(kFunctions) == kFunctionKindCount);

// Every kind of function on every shape.
std::vector<KernelCase> FunctionCases() {
  const std::vector<Tail> tails = TailsOf(Op::kFunction);
  std::vector<KernelCase> cases;
  for (const LayerShape& shape : PlaneShapes()) {
    for (const Function& function : kFunctions) {
      const size_t turn = cases.size();
      cases.push_back(MakeCase(Op::kFunction, shape, tails[turn % tails.size()], 0, 1 + static_cast<int>(turn % 2)));
      cases.back().problem.function() = function;
    }
  }
  return cases;
}

// Convolutions in groups, whole and pruned.
void AddCasesInGroups(const std::vector<Tail>& tails, std::vector<KernelCase>& cases) {
  for (const auto& [shape, groups] : kShapesInGroups) {
    for (const bool odd : {false, true}) {
      cases.push_back(MakeCase(Op::kConv, shape, tails[cases.size() % tails.size()], odd ? 0.9 : 0, odd ? 2 : 1));
      cases.back().groups = groups;
    }
  }
}

// What the rest of a case's text does not say of sequences.
std::string SequenceText(const KernelCase& kernel_case) {
  std::string text = " lengths";
  for (int32_t length : kernel_case.lengths) text += Concat(" ", length);
  return text + Concat(" masked ", static_cast<int>(kernel_case.masked), " mean ", kernel_case.mean);
}

// Of 2:4, and first layers.
void AddCasesOfStructures(const std::vector<Tail>& tails, std::vector<KernelCase>& cases) {
  for (const LayerShape& shape : kTwoOfFourShapes) {
    const size_t turn = cases.size();
    cases.push_back(MakeCase(Op::kConv, shape, tails[turn % tails.size()], turn % 2 == 0 ? 0 : 0.3, 1));
    cases.back().two_of_four = true;
  }
  for (const LayerShape& shape : kStemShapes) {
    cases.push_back(MakeCase(Op::kConv, shape, kTails[cases.size() % 4], 0, 1));  // without a residual
  }
}

// Convolutions whose rows, and neighbouring channels, share zeros.
void AddCasesOfVectors(const std::vector<LayerShape>& shapes, const std::vector<Tail>& tails,
                       std::vector<KernelCase>& cases) {
  for (size_t i = 1; i < shapes.size(); i += 2) {
    const int threads = i / 2 % 2 == 0 ? 1 : 2;
    cases.push_back(MakeCase(Op::kConv, shapes[i], tails[i / 2 % tails.size()], i % 4 == 1 ? 0.5 : 0.9, threads));
    cases.back().vector_rows = i % 3 == 0 ? 8 : 4;
  }
  for (size_t i = 0; i < shapes.size(); i += 3) {
    cases.push_back(
        MakeCase(Op::kConv, shapes[i], tails[i % tails.size()], i % 2 == 0 ? 0.8 : 0.6, i % 2 == 0 ? 2 : 1));
    cases.back().vector_rows = i % 4 == 3 ? 4 : static_cast<int64_t>(i % 2 + 1);
    cases.back().block_channels = i % 4 == 1 ? 1 : 4;
  }
}

}  // namespace

void KeepTwoOfFour(DenseMatrix& matrix, std::mt19937& random) {
  constexpr int kPairs[] = {0b0011, 0b0101, 0b0110, 0b1001, 0b1010, 0b1100};
  int pair = 0;
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const int64_t place = i % matrix.cols % 4;
    if (place == 0) pair = kPairs[random() % std::size(kPairs)];
    if ((pair >> place & 1) == 0) matrix.values[i] = 0;
  }
}

void ShuffleRows(DenseMatrix& matrix, std::mt19937& random) {
  for (int64_t row = matrix.rows - 1; row > 0; --row) {
    const auto at = matrix.values.begin() + row * matrix.cols;
    const auto other = static_cast<int64_t>(random() % (row + 1));
    std::swap_ranges(at, at + matrix.cols, matrix.values.begin() + other * matrix.cols);
  }
}

std::string CaseText(const KernelCase& kernel_case) {
  const Problem& problem = kernel_case.problem;
  const auto extent_text = [](const Extent& extent) {
    return Concat(extent.batch, "x", extent.channels, "x", extent.height, "x", extent.width);
  };
  return Concat(OpName(problem.op), " ", extent_text(problem.input), " -> ", extent_text(problem.output),
                AttributesText(problem.attributes), kernel_case.bias ? " bias" : "",
                problem.epilogue.residual ? " residual" : "", " [", problem.epilogue.low, ",", problem.epilogue.high,
                "]", problem.epilogue.function ? AttributesText(*problem.epilogue.function) : "",
                kernel_case.lengths.empty() ? "" : SequenceText(kernel_case), " sparsity ", kernel_case.sparsity,
                kernel_case.vector_rows > 1 ? Concat(" vectors of ", kernel_case.vector_rows, " rows") : "",
                kernel_case.shuffled ? " shuffled" : "",
                kernel_case.block_channels > 1 ? Concat(" blocks of ", kernel_case.block_channels, " channels") : "",
                kernel_case.groups > 1 ? Concat(" groups ", kernel_case.groups) : "",
                kernel_case.two_of_four ? " 2:4" : "", kernel_case.wide_bytes ? " wide" : "", " threads ",
                problem.threads);
}

// Every shape meets two tails and sparsities, which move on from shape to shape; one shape of a layer with weights
// meets all of them. Convolutions are also tried with weights whose rows share zeros.
std::vector<KernelCase> KernelCases(Op op) {
  if (std::vector<KernelCase> cases = PlaneCases(op); !cases.empty()) return cases;
  if (std::vector<KernelCase> cases = SequenceCases(op); !cases.empty()) return cases;
  if (op == Op::kFunction) return FunctionCases();
  const std::vector<LayerShape> shapes = ShapesOf(op);
  const std::vector<Tail> tails = TailsOf(op);
  std::vector<KernelCase> cases;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int j = 0; j < 2; ++j) {
      const size_t turn = 2 * i + j;
      cases.push_back(MakeCase(op, shapes[i], tails[turn % tails.size()], kSparsities[(turn + i / 2) % 4], 1 + j));
    }
  }
  if (op != Op::kConv && op != Op::kDepthwiseConv) return cases;
  for (const Tail& tail : tails) {
    for (double sparsity : kSparsities) cases.push_back(MakeCase(op, shapes[shapes.size() / 3], tail, sparsity, 2));
  }
  if (op != Op::kConv) return cases;
  AddCasesOfVectors(shapes, tails, cases);
  for (const GroupedShape& grouped : kGroupedShapes) {
    const size_t turn = cases.size();
    const bool odd = turn % 2 == 1;
    cases.push_back(MakeCase(op, grouped.shape, tails[turn % tails.size()], odd ? 0.9 : 0.5, odd ? 2 : 1));
    cases.back().vector_rows = grouped.vector_rows;
    cases.back().shuffled = turn % 3 != 0;
  }
  AddCasesInGroups(tails, cases);
  AddCasesOfStructures(tails, cases);
  return cases;
}

std::vector<KernelCase> FusedCases(Op op) {
  if (op == Op::kLayerNorm) return NormOfProductCases();
  std::vector<KernelCase> cases;
  const bool packs = IsAttention(op) && op != Op::kSparseAttention;
  if (op != Op::kConv && op != Op::kDepthwiseConv && !packs) return cases;
  const std::vector<KernelCase> plain = KernelCases(op);
  for (size_t i = 0; i < plain.size(); i += 2) {
    cases.push_back(plain[i]);
    Problem& problem = cases.back().problem;
    if (!packs) {
      if (op == Op::kDepthwiseConv) problem.epilogue = {};  // they end nothing else
      problem.epilogue.function = kFunctions[i / 2 % std::size(kFunctions)];
    } else {
      problem.input.channels += KeyChannels(problem) + ValueChannels(problem);
      problem.attention().packed = true;
    }
  }
  if (op != Op::kConv) return cases;
  // Few of those above have weights of a structure.
  for (const Function& function : kFunctions) {
    const Tail& tail = kTails[cases.size() / 2 % std::size(kTails)];
    cases.push_back(MakeCase(op, kTwoOfFourShapes[3], tail, 0, 1));
    cases.back().two_of_four = true;
    cases.back().problem.epilogue.function = function;
    for (const GroupedShape& grouped : {kGroupedShapes[3], kGroupedShapes[4]}) {
      for (const double sparsity : {0.5, 0.9}) {  // the latter leaves most columns empty
        cases.push_back(MakeCase(op, grouped.shape, tail, sparsity, 1));
        cases.back().vector_rows = grouped.vector_rows;
        cases.back().problem.epilogue.function = function;
      }
    }
    cases.push_back(MakeCase(op, kGroupedShapes[1].shape, tail, 0.9, 1));
    cases.back().vector_rows = 8;
    cases.back().problem.epilogue.function = function;
  }
  return cases;
}

}  // namespace swizzle
