#include "model_loader/packed/packed_graph.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "kernels/base/integers.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/packed/array_writer.h"

namespace swizzle {
namespace {

constexpr int64_t kWordBits = 64;

// Of single bytes the most common one; else 0, which is what pruning leaves.
uint64_t FillerOf(std::span<const std::byte> elements, int32_t element_bytes) {
  if (element_bytes > 1) return 0;
  std::array<int64_t, 256> counts{};
  for (const std::byte element : elements) ++counts[static_cast<size_t>(element)];
  return static_cast<uint64_t>(std::ranges::max_element(counts) - counts.begin());
}

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
  made.occupied.resize(static_cast<size_t>(CeilDiv(made.elements, kWordBits)));
  VisitWidth(element_bytes, [&]<typename T>(T) {
    for (size_t i = 0; i < static_cast<size_t>(made.elements); ++i) {
      if (ElementAt<T>(elements, i) == static_cast<T>(made.filler)) continue;
      made.occupied[i / kWordBits] |= uint64_t{1} << (i % kWordBits);
      const auto bytes = elements.subspan(i * sizeof(T), sizeof(T));
      made.values.insert(made.values.end(), bytes.begin(), bytes.end());
    }
  });
  if (made.stored_bytes() < made.dense_bytes()) return made;
  made.filler = 0;
  made.occupied.clear();
  made.values.assign(elements.begin(), elements.end());
  return made;
}

int64_t PackedGraph::dense_bytes() const {
  int64_t bytes = 0;
  for (const CompressedElements& tensor : tensors) bytes += tensor.dense_bytes();
  return bytes;
}

int64_t PackedGraph::stored_bytes() const {
  int64_t bytes = 0;
  for (const CompressedElements& tensor : tensors) bytes += tensor.stored_bytes();
  return bytes;
}

StatusOr<std::vector<std::byte>> PackedGraph::ElementsAt(const std::string& location, int64_t bytes) const {
  size_t index = 0;
  const auto [stop, error] = std::from_chars(location.data(), location.data() + location.size(), index);
  if (error != std::errc() || stop != location.data() + location.size() || index >= tensors.size()) {
    return InvalidArgument("the packed model has no elements '", location, "'; it has ", tensors.size(), " tensors");
  }
  if (tensors[index].dense_bytes() != bytes) {
    return InvalidArgument("the packed model has ", tensors[index].dense_bytes(), " bytes of elements where ", bytes,
                           " are asked for");
  }
  return tensors[index].Expanded();
}

StatusOr<std::vector<std::byte>> EncodePacked(const PackedGraph& graph) {
  ArrayWriter arrays;
  packed::Header header;
  packed::Graph& proto = *header.mutable_graph();
  arrays.Add(DType::kUint8, graph.model, *proto.mutable_model());
  for (const CompressedElements& tensor : graph.tensors) {
    packed::Elements& elements = *proto.add_tensors();
    elements.set_elements(tensor.elements);
    elements.set_element_bytes(tensor.element_bytes);
    elements.set_filler(tensor.filler);
    if (!tensor.occupied.empty()) {
      arrays.Add(DType::kUint64, std::as_bytes(std::span(tensor.occupied)), *elements.mutable_occupied());
    }
    arrays.Add(DType::kUint8, tensor.values, *elements.mutable_values());
  }
  return PackedFile(header, arrays, kGraphVersion);
}

Status WritePacked(const PackedGraph& graph, const std::filesystem::path& file) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, EncodePacked(graph));
  return WriteFileAtomically(file, bytes);
}

}  // namespace swizzle
