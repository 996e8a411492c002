#include "model_loader/pack/graph_file.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/real_types.h"
#include "kernels/format/transpose.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/passes/lower.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::pack {
namespace {

// What is smaller is scalars and shapes, which stay where they are read.
constexpr int64_t kLeastBytes = 256;

bool IsWhole(const Tensor& tensor) { return tensor.dtype == DType::kInt8 || tensor.dtype == DType::kUint8; }

// What whole numbers are zero at: the most common one, which is what pruning leaves.
int32_t ZeroPointOf(const Tensor& tensor) {
  if (!IsWhole(tensor)) return 0;
  const auto filler = static_cast<uint8_t>(FillerOf(tensor.bytes, 1));
  return tensor.dtype == DType::kInt8 ? static_cast<int8_t>(filler) : int32_t{filler};
}

// FP32 elements, less the zero point. Zeros have no sign.
std::vector<float> RealsOf(const Tensor& tensor, int32_t zero_point) {
  std::vector<float> reals(static_cast<size_t>(tensor.elements()));
  VisitElementType(tensor.dtype, [&]<typename T>(T element) {
    for (size_t i = 0; i < reals.size(); ++i) {
      std::memcpy(&element, tensor.bytes.data() + i * sizeof(T), sizeof(T));
      const auto real = static_cast<float>(Widened(element)) - static_cast<float>(zero_point);
      reals[i] = real == 0.0f ? 0.0f : real;
    }
  });
  return reals;
}

// [outputs, inputs * window], as layers have it. Nothing for stacks of matrices, and for elements of other types.
std::optional<DenseMatrix> MatrixOf(const OnnxWeight& weight, const Tensor& tensor, int32_t zero_point) {
  const bool is_held = tensor.dtype == DType::kFloat32 || IsHalf(tensor.dtype) || IsWhole(tensor);
  const size_t rank = tensor.shape.size();
  if (!is_held || rank < 2 || (weight.outputs_last && rank != 2) || tensor.elements() == 0) return std::nullopt;
  const int64_t rows = weight.outputs_last ? tensor.shape[1] : tensor.shape[0], cols = tensor.elements() / rows;
  DenseMatrix dense{rows, cols, RealsOf(tensor, zero_point)};
  if (weight.outputs_last) dense.values = Transposed(dense.values, cols, rows);
  return dense;
}

// Nothing where it is not worth a sparse format.
std::optional<MatrixElements> SparseOf(const OnnxWeight& weight, const Tensor& tensor) {
  const int32_t zero_point = ZeroPointOf(tensor);
  std::optional<DenseMatrix> dense = MatrixOf(weight, tensor, zero_point);
  if (!dense) return std::nullopt;
  MatrixElements made{ChooseFormat(*std::move(dense)), tensor.dtype, weight.outputs_last, zero_point};
  return IsSparse(made.matrix.format()) ? std::optional(std::move(made)) : std::nullopt;
}

class Packer {
 public:
  Packer(const std::string& asked, bool with_costs) : asked_(asked), with_costs_(with_costs) {}

  PackedElements Pack(const Tensor& tensor, const std::optional<OnnxWeight>& weight) {
    const std::optional<MatrixElements> sparse_form = weight ? SparseOf(*weight, tensor) : std::nullopt;
    CompressedElements bits = Compressed(sparse_form ? sparse_form->Expanded() : tensor.bytes,
                                         static_cast<int32_t>(ElementBytes(tensor.dtype)));
    bits_bytes_ += bits.stored_bytes();
    if (!sparse_form) return bits;
    MatrixElements made = *sparse_form;
    const SparseWeight sparse{made.matrix, weight->taps(), bits.stored_bytes(), /*may_stay=*/true};
    const auto bytes_of = [&](const WeightMatrix& matrix) {
      return MatrixElements{matrix, tensor.dtype, weight->outputs_last}.stored_bytes();
    };
    if (with_costs_) costs_.Add(sparse, bytes_of);
    std::optional<WeightMatrix> changed = InFormat(sparse, asked_, bytes_of, refusals_);
    if (!changed) return bits;
    made.matrix = *std::move(changed);
    return made;
  }

  const FormatRefusals& refusals() const { return refusals_; }
  FormatCosts Costs() const { return costs_.Costs(bits_bytes_); }

 private:
  const std::string& asked_;
  const bool with_costs_;
  FormatRefusals refusals_;
  FormatCostSum costs_;
  int64_t bits_bytes_ = 0;  // of all tensors, none as a matrix
};

// Calls see(packed) for each tensor, which is gone then. What is left of the model.
template <typename See>
StatusOr<std::vector<std::byte>> PackTensors(const OnnxModel& model, Packer& packer, const See& see) {
  SWIZZLE_ASSIGN_OR_RETURN(DetachedModel detached, DetachInitializers(model.source(), kLeastBytes, model.options));
  for (size_t i = 0; i < detached.tensors.size(); ++i) {
    see(packer.Pack(detached.tensors[i], detached.weights[i]));
    detached.tensors[i] = {};
  }
  return std::move(detached.model);
}

}  // namespace

StatusOr<GraphPacking> PackedGraphOf(const OnnxModel& model, const std::string& format, bool with_costs) {
  Packer packer(format, with_costs);
  GraphPacking packing;
  const auto keep = [&](PackedElements tensor) { packing.graph.tensors.push_back(std::move(tensor)); };
  SWIZZLE_ASSIGN_OR_RETURN(packing.graph.model, PackTensors(model, packer, keep));
  packing.graph.zeros = model.zeros;
  packing.refusals = packer.refusals();
  packing.costs = packer.Costs();
  return packing;
}

StatusOr<FormatCosts> CostsOfFormats(const OnnxModel& model) {
  const std::string as_it_comes = "auto";
  Packer packer(as_it_comes, /*with_costs=*/true);
  SWIZZLE_RETURN_IF_ERROR(PackTensors(model, packer, [](const PackedElements&) {}).status());
  return packer.Costs();
}

Status WriteGraph(std::span<const std::byte> model, const std::filesystem::path& file) {
  if (file.extension() != ".swz") return WriteFileAtomically(file, model);
  SWIZZLE_ASSIGN_OR_RETURN(GraphPacking packing, PackedGraphOf({.bytes = {model.begin(), model.end()}}));
  return WritePacked(std::move(packing.graph), file);
}

}  // namespace swizzle::pack
