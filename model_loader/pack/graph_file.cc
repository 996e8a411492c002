#include "model_loader/pack/graph_file.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/base/real_types.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/onnx/onnx_rewrite.h"
#include "model_loader/passes/lower.h"

namespace swizzle::pack {
namespace {

// What is smaller is scalars and shapes, which stay where they are read.
constexpr int64_t kLeastBytes = 256;

// FP32 elements. Zeros have no sign.
std::vector<float> RealsOf(const Tensor& tensor) {
  std::vector<float> reals(static_cast<size_t>(tensor.elements()));
  for (size_t i = 0; i < reals.size(); ++i) {
    if (IsHalf(tensor.dtype)) {
      uint16_t half;
      std::memcpy(&half, tensor.bytes.data() + i * sizeof(half), sizeof(half));
      reals[i] = FloatOfHalfBits(half, tensor.dtype);
    } else {
      std::memcpy(&reals[i], tensor.bytes.data() + i * sizeof(float), sizeof(float));
    }
    if (reals[i] == 0.0f) reals[i] = 0.0f;
  }
  return reals;
}

// [outputs, inputs * window], as layers have it. Nothing for stacks of matrices, and for elements of other types.
std::optional<DenseMatrix> MatrixOf(const OnnxWeight& weight, const Tensor& tensor) {
  const bool is_real = tensor.dtype == DType::kFloat32 || IsHalf(tensor.dtype);
  const size_t rank = tensor.shape.size();
  if (!is_real || rank < 2 || (weight.outputs_last && rank != 2) || tensor.elements() == 0) return std::nullopt;
  const int64_t rows = weight.outputs_last ? tensor.shape[1] : tensor.shape[0], cols = tensor.elements() / rows;
  DenseMatrix dense{rows, cols, RealsOf(tensor)};
  if (!weight.outputs_last) return dense;
  std::vector<float> turned(dense.values.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      turned[static_cast<size_t>(row * cols + col)] = dense.values[static_cast<size_t>(col * rows + row)];
    }
  }
  dense.values = std::move(turned);
  return dense;
}

// Nothing where it is not worth a sparse format.
std::optional<MatrixElements> SparseOf(const OnnxWeight& weight, const Tensor& tensor) {
  std::optional<DenseMatrix> dense = MatrixOf(weight, tensor);
  if (!dense) return std::nullopt;
  MatrixElements made{ChooseFormat(*std::move(dense)), tensor.dtype, weight.outputs_last};
  return IsSparse(made.matrix.format()) ? std::optional(std::move(made)) : std::nullopt;
}

class Packer {
 public:
  Packer(const std::string& asked, bool with_costs) : asked_(asked), with_costs_(with_costs) {}

  GraphPacking Pack(DetachedModel detached) {
    GraphPacking made;
    made.graph.model = std::move(detached.model);
    for (size_t i = 0; i < detached.tensors.size(); ++i) {
      made.graph.tensors.push_back(Pack(detached.tensors[i], detached.weights[i]));
      detached.tensors[i] = {};
    }
    made.refusals = std::move(refusals_);
    made.costs = costs_.Costs(bits_bytes_);
    return made;
  }

 private:
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

  const std::string& asked_;
  const bool with_costs_;
  FormatRefusals refusals_;
  FormatCostSum costs_;
  int64_t bits_bytes_ = 0;  // of all tensors, none as a matrix
};

}  // namespace

StatusOr<GraphPacking> PackedGraphOf(const OnnxModel& model, const std::string& format, bool with_costs) {
  SWIZZLE_ASSIGN_OR_RETURN(DetachedModel detached, DetachInitializers(model.bytes, kLeastBytes, model.options));
  GraphPacking packing = Packer(format, with_costs).Pack(std::move(detached));
  packing.graph.zeros = model.zeros;
  return packing;
}

Status WriteGraph(std::span<const std::byte> model, const std::filesystem::path& file) {
  if (file.extension() != ".swz") return WriteFileAtomically(file, model);
  SWIZZLE_ASSIGN_OR_RETURN(const GraphPacking packing, PackedGraphOf({{model.begin(), model.end()}, {}, {}}));
  return WritePacked(packing.graph, file);
}

bool HoldsGraph(const std::filesystem::path& file) { return file.extension() == ".swz" && ReadOnnxModel(file).ok(); }

}  // namespace swizzle::pack
