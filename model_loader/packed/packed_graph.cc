#include "model_loader/packed/packed_graph.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "kernels/base/check.h"
#include "kernels/base/half_bits.h"
#include "kernels/base/integers.h"
#include "kernels/base/real_types.h"
#include "kernels/format/transpose.h"
#include "kernels/format/whole_values.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/packed/packed_matrix.h"
#include "model_loader/packed/packed_zeros.h"

namespace swizzle {
namespace {

constexpr int64_t kWordBits = 64;

// Calls visit(T()) with an integer of so many bytes.
template <typename Visit>
void VisitWidth(int32_t element_bytes, const Visit& visit) {
  switch (element_bytes) {
    case 1:
      return visit(uint8_t());
    case 2:
      return visit(uint16_t());
    case 4:
      return visit(uint32_t());
    default:
      return visit(uint64_t());
  }
}

template <typename T>
T ElementAt(std::span<const std::byte> elements, size_t i) {
  T element;
  std::memcpy(&element, elements.data() + i * sizeof(T), sizeof(T));
  return element;
}

}  // namespace

uint64_t FillerOf(std::span<const std::byte> elements, int32_t element_bytes) {
  if (element_bytes > 1) return 0;
  std::array<int64_t, 256> counts{};
  for (const std::byte element : elements) ++counts[static_cast<size_t>(element)];
  return static_cast<uint64_t>(std::ranges::max_element(counts) - counts.begin());
}

int64_t CompressedElements::stored_bytes() const {
  return static_cast<int64_t>(occupied.size() * sizeof(uint64_t) + values.size());
}

Status CompressedElements::Validate() const {
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4 && element_bytes != 8) {
    return InvalidArgument("its elements are of ", element_bytes, " bytes");
  }
  if (elements < 0 || elements > (int64_t{1} << 40)) return InvalidArgument("it cannot have ", elements, " elements");
  int64_t held = elements;
  if (!occupied.empty()) {
    if (static_cast<int64_t>(occupied.size()) != CeilDiv(elements, kWordBits)) {
      return InvalidArgument("it has ", elements, " elements, and bits for ", occupied.size() * kWordBits);
    }
    const int64_t used = elements % kWordBits;
    if (used != 0 && (occupied.back() >> used) != 0) return InvalidArgument("it has bits beyond its elements");
    held = 0;
    for (const uint64_t word : occupied) held += std::popcount(word);
  }
  if (held * element_bytes != static_cast<int64_t>(values.size())) {
    return InvalidArgument("it holds ", held, " elements of ", element_bytes, " bytes in ", values.size(), " bytes");
  }
  return {};
}

std::vector<std::byte> CompressedElements::Expanded() const {
  if (occupied.empty()) return values;
  std::vector<std::byte> dense(static_cast<size_t>(dense_bytes()));
  VisitWidth(element_bytes, [&]<typename T>(T) {
    const T left_out = static_cast<T>(filler);
    if (left_out != 0) {
      for (size_t i = 0; i < dense.size(); i += sizeof(T)) std::memcpy(&dense[i], &left_out, sizeof(T));
    }
    const std::byte* next = values.data();
    for (size_t word = 0; word < occupied.size(); ++word) {
      for (uint64_t left = occupied[word]; left != 0; left &= left - 1) {
        const size_t place = word * kWordBits + static_cast<size_t>(std::countr_zero(left));
        std::memcpy(dense.data() + place * sizeof(T), next, sizeof(T));
        next += sizeof(T);
      }
    }
  });
  return dense;
}

CompressedElements Compressed(std::span<const std::byte> elements, int32_t element_bytes) {
  CompressedElements made;
  made.element_bytes = element_bytes;
  made.elements = static_cast<int64_t>(elements.size()) / element_bytes;
  made.filler = FillerOf(elements, element_bytes);
  const auto count = static_cast<size_t>(made.elements), words = static_cast<size_t>(CeilDiv(made.elements, kWordBits));
  VisitWidth(element_bytes, [&]<typename T>(T) {
    const T filler = static_cast<T>(made.filler);
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) kept += ElementAt<T>(elements, i) != filler ? 1 : 0;
    if (words * sizeof(uint64_t) + kept * sizeof(T) >= elements.size()) return;
    made.occupied.resize(words);
    made.values.reserve(kept * sizeof(T));
    for (size_t i = 0; i < count; ++i) {
      if (ElementAt<T>(elements, i) == filler) continue;
      made.occupied[i / kWordBits] |= uint64_t{1} << (i % kWordBits);
      const auto bytes = elements.subspan(i * sizeof(T), sizeof(T));
      made.values.insert(made.values.end(), bytes.begin(), bytes.end());
    }
  });
  if (!made.occupied.empty()) return made;
  made.filler = 0;
  made.values.assign(elements.begin(), elements.end());
  return made;
}

int64_t MatrixElements::dense_bytes() const {
  const MatrixSize size = matrix.size();
  return size.rows * size.cols * static_cast<int64_t>(ElementBytes(dtype));
}

int64_t MatrixElements::stored_bytes() const {
  class Sum final : public PartSink {
   public:
    explicit Sum(DType values) : values_(values) {}
    void Scalar(std::string_view, int64_t) override {}
    void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
      const bool real = array.role == MatrixArray::Role::kValues && array.stored == DType::kFloat32;
      bytes += elements.size() / ElementBytes(array.type) * ElementBytes(real ? values_ : array.stored);
    }
    size_t bytes = 0;

   private:
    const DType values_;
  };
  Sum sum(dtype);
  matrix.Write(sum);
  return static_cast<int64_t>(sum.bytes);
}

std::vector<std::byte> MatrixElements::Expanded() const {
  DenseMatrix dense = matrix.ToDense();
  if (transposed) dense.values = Transposed(dense.values, dense.rows, dense.cols);
  std::vector<std::byte> elements(static_cast<size_t>(dense_bytes()));
  if (is_whole()) {
    std::ranges::transform(dense.values, elements.begin(), [&](float value) {
      return static_cast<std::byte>(static_cast<int32_t>(value) + zero_point);
    });
  } else if (IsHalf(dtype)) {
    StoreHalves(dense.values, dtype, elements.data());
  } else if (!elements.empty()) {
    std::memcpy(elements.data(), dense.values.data(), elements.size());
  }
  return elements;
}

int64_t PackedGraph::dense_bytes() const {
  int64_t bytes = 0;
  for (const PackedElements& tensor : tensors) bytes += DenseBytes(tensor);
  return bytes;
}

int64_t PackedGraph::stored_bytes() const {
  int64_t bytes = 0;
  for (const PackedElements& tensor : tensors) bytes += StoredBytes(tensor);
  return bytes;
}

StatusOr<std::vector<std::byte>> PackedGraph::ElementsAt(const std::string& location, int64_t bytes) const {
  size_t index = 0;
  const auto [stop, error] = std::from_chars(location.data(), location.data() + location.size(), index);
  if (error != std::errc() || stop != location.data() + location.size() || index >= tensors.size()) {
    return InvalidArgument("the packed model has no elements '", location, "'; it has ", tensors.size(), " tensors");
  }
  if (DenseBytes(tensors[index]) != bytes) {
    return InvalidArgument("the packed model has ", DenseBytes(tensors[index]), " bytes of elements where ", bytes,
                           " are asked for");
  }
  return Expanded(tensors[index]);
}

namespace {

void Pack(CompressedElements tensor, ArrayWriter& arrays, packed::Elements& proto) {
  proto.set_elements(tensor.elements);
  proto.set_element_bytes(tensor.element_bytes);
  proto.set_filler(tensor.filler);
  if (!tensor.occupied.empty()) {
    arrays.Add(DType::kUint64, std::as_bytes(std::span(tensor.occupied)), *proto.mutable_occupied());
  }
  arrays.Add(DType::kUint8, std::move(tensor.values), *proto.mutable_values());
}

void Pack(const MatrixElements& tensor, ArrayWriter& arrays, packed::Elements& proto) {
  const MatrixSize size = tensor.matrix.size();
  proto.set_elements(size.rows * size.cols);
  proto.set_element_bytes(static_cast<int32_t>(ElementBytes(tensor.dtype)));
  packed::TensorMatrix& matrix = *proto.mutable_matrix();
  matrix.set_datatype(std::string(DTypeName(tensor.dtype)));
  matrix.set_rows(size.rows);
  matrix.set_transposed(tensor.transposed);
  matrix.mutable_parts()->set_format(std::string(FormatName(tensor.matrix.format())));
  if (!tensor.is_whole()) {
    MatrixWriter writer(arrays, *matrix.mutable_parts(), tensor.dtype);
    tensor.matrix.Write(writer);
    return;
  }
  proto.set_filler(static_cast<uint8_t>(tensor.zero_point));
  auto wholes = WholeValues({tensor.matrix, {}, Quantisation{tensor.dtype, {1.0f}, {tensor.zero_point}}});
  SWIZZLE_CHECK(wholes.has_value());
  MatrixWriter writer(arrays, *matrix.mutable_parts(), DType::kFloat32, std::move(wholes), tensor.dtype);
  tensor.matrix.Write(writer);
}

StatusOr<FilePieces> PiecesOf(PackedGraph graph) {
  ArrayWriter arrays;
  packed::Header header;
  packed::Graph& proto = *header.mutable_graph();
  arrays.Add(DType::kUint8, std::move(graph.model), *proto.mutable_model());
  bool has_matrices = false;
  for (PackedElements& tensor : graph.tensors) {
    has_matrices |= std::holds_alternative<MatrixElements>(tensor);
    std::visit([&](auto&& of) { Pack(std::move(of), arrays, *proto.add_tensors()); }, std::move(tensor));
    tensor = {};
  }
  for (const auto& [value, zeros] : graph.zeros) {
    packed::NamedZeros& named = *proto.add_zeros();
    named.set_value(value);
    PackZeros(zeros, *named.mutable_zeros());
  }
  return PackedFile(header, std::move(arrays), has_matrices ? kGraphFormatsVersion : kGraphVersion);
}

}  // namespace

StatusOr<std::vector<std::byte>> EncodePacked(PackedGraph graph) {
  SWIZZLE_ASSIGN_OR_RETURN(const FilePieces pieces, PiecesOf(std::move(graph)));
  return Joined(pieces);
}

Status WritePacked(PackedGraph graph, const std::filesystem::path& file) {
  SWIZZLE_ASSIGN_OR_RETURN(const FilePieces pieces, PiecesOf(std::move(graph)));
  return WriteFileAtomically(file, pieces);
}

}  // namespace swizzle
