// A model of any graph as packed files hold it: an ONNX model, and apart from it the elements of its initializers,
// compressed by leaving out those that are the most common one, or, of weights that layers multiply with, as a matrix
// in a format of weights. The most common one is 0 in what is pruned, and the zero point in what is quantised besides.
// Every bit of an element is kept, but for the sign of zeros that a matrix is made of. Value types, pure functions.
#ifndef SWIZZLE_MODEL_LOADER_PACKED_PACKED_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_PACKED_PACKED_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/format/weight_matrix.h"
#include "kernels/operator/input_zeros.h"

namespace swizzle {

struct CompressedElements {
  int64_t elements = 0;
  int32_t element_bytes = 1;       // 1, 2, 4 or 8
  uint64_t filler = 0;             // the bits of what is left out, the least significant ones
  std::vector<uint64_t> occupied;  // a bit for each element, from the least significant on; empty: none is left out
  std::vector<std::byte> values;   // of the elements whose bits are set

  int64_t dense_bytes() const { return elements * element_bytes; }
  int64_t stored_bytes() const;
  // INVALID_ARGUMENT where the parts do not fit each other.
  Status Validate() const;
  // REQUIRES: it is valid.
  std::vector<std::byte> Expanded() const;
};

// The most common one of single bytes; else 0, which is what pruning leaves.
uint64_t FillerOf(std::span<const std::byte> elements, int32_t element_bytes);

// Whichever of both forms is the smaller. REQUIRES: whole elements of 1, 2, 4 or 8 bytes.
CompressedElements Compressed(std::span<const std::byte> elements, int32_t element_bytes);

// The elements of a tensor as a matrix, of which the tensor's are the rows one after another or, where it is
// transposed, the columns.
struct MatrixElements {
  WeightMatrix matrix = {};       // in a format that has values
  DType dtype = DType::kFloat32;  // of the tensor's elements, all of which it has: FP32, a half, INT8 or UINT8
  bool transposed = false;
  int32_t zero_point = 0;  // of INT8 and UINT8: the matrix has the elements less this

  int64_t dense_bytes() const;
  int64_t stored_bytes() const;
  std::vector<std::byte> Expanded() const;
  bool is_whole() const { return dtype == DType::kInt8 || dtype == DType::kUint8; }
};

using PackedElements = std::variant<CompressedElements, MatrixElements>;

inline int64_t DenseBytes(const PackedElements& elements) {
  return std::visit([](const auto& of) { return of.dense_bytes(); }, elements);
}
inline int64_t StoredBytes(const PackedElements& elements) {
  return std::visit([](const auto& of) { return of.stored_bytes(); }, elements);
}
inline std::vector<std::byte> Expanded(const PackedElements& elements) {
  return std::visit([](const auto& of) { return of.Expanded(); }, elements);
}

struct PackedGraph {
  std::vector<std::byte> model;  // onnx.ModelProto, whose external file "i" is tensors[i]
  std::vector<PackedElements> tensors;
  std::map<std::string, InputZeros> zeros = {};  // on calibration data, by values' names in the model

  int64_t dense_bytes() const;  // of tensors
  int64_t stored_bytes() const;
  // The elements that the model calls `location`. INVALID_ARGUMENT where there are none of so many bytes.
  StatusOr<std::vector<std::byte>> ElementsAt(const std::string& location, int64_t bytes) const;
};

// The bytes of the file; equal graphs give equal bytes. RESOURCE_EXHAUSTED if it has too many tensors for one header.
StatusOr<std::vector<std::byte>> EncodePacked(PackedGraph graph);

// `file` is replaced as a whole or, on an error, left alone. A graph that is given away is not held twice.
Status WritePacked(PackedGraph graph, const std::filesystem::path& file);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PACKED_PACKED_GRAPH_H_
