#include "model_loader/packed/packed_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/base/field_count.h"
#include "kernels/base/real_types.h"
#include "kernels/format/whole_values.h"
#include "kernels/operator/count_zeros.h"
#include "model_loader/files/file_kind.h"
#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_matrix.h"
#include "model_loader/packed/packed_operator.h"
#include "model_loader/packed/packed_quantisation.h"
#include "model_loader/packed/packed_zeros.h"

namespace swizzle {
namespace {

constexpr size_t kMaxNameBytes = 1024;
// Of all weights together, had they been stored dense, and of each tensor of a graph, which is made FP32 on its way;
// bytes of all tensors of graphs.
constexpr int64_t kMaxDenseElements = int64_t{1} << 31, kMaxDenseBytes = int64_t{1} << 33;

struct Contents {
  packed::Header header;
  size_t header_end = 0;  // offset in the file
};

// An array with where it lies and what to call it in an error.
struct PlacedArray {
  std::string what;
  const packed::Array* array = nullptr;
  uint64_t begin = 0;  // offset in the file
  uint64_t end = 0;
};

StatusOr<PackedPrefix> ReadPrefix(std::span<const std::byte> file) {
  PackedPrefix prefix;
  const size_t magic_bytes = std::min(file.size(), prefix.magic.size());
  if (file.empty() || std::memcmp(file.data(), prefix.magic.data(), magic_bytes) != 0) {
    constexpr std::byte kIrVersion{0x08};  // the tag of the field that most ONNX models begin with
    const auto kind = KindOfFile(file);
    if (!kind.empty()) return InvalidArgument("this is not a packed model, but ", kind);
    return InvalidArgument("this is not a packed model: it does not start with the signature of one",
                           file.front() == kIrVersion ? "; if it is an ONNX model, let its name end in .onnx" : "");
  }
  if (file.size() < sizeof(prefix)) {
    return InvalidArgument("the packed model is truncated: it has ", file.size(), " bytes");
  }
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  if (prefix.version > kPackedVersion) {
    return Unimplemented("the packed model has format version ", prefix.version, "; this program reads up to version ",
                         kPackedVersion, ": use a newer program, or pack the model again with this one's swizzle-pack");
  }
  if (prefix.version == 0) return InvalidArgument("the packed model is damaged: there is no format version 0");
  if (prefix.header_bytes > kMaxPackedHeaderBytes) {
    return InvalidArgument("the packed model claims a header of ", prefix.header_bytes, " bytes; the limit is ",
                           kMaxPackedHeaderBytes);
  }
  return prefix;
}

Status CheckName(const std::string& name, const char* what) {
  const bool printable = std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (printable && name.size() <= kMaxNameBytes) return {};
  return InvalidArgument("the name of ", what, " has control characters or more than ", kMaxNameBytes, " bytes");
}

// A matrix of version 1 becomes one of parts.
void SplitIntoParts(packed::Weight& weight) {
  packed::Matrix matrix;
  const auto add = [&](const char* name, packed::Array* array) {
    packed::NamedArray& named = *matrix.add_arrays();
    named.set_name(name);
    named.mutable_array()->Swap(array);
  };
  const auto add_places = [&](auto* sparse) {
    add("row offsets", sparse->mutable_row_offsets());
    add("column indices", sparse->mutable_col_indices());
  };
  if (weight.has_dense()) {
    matrix.set_format("dense");
    add("values", weight.mutable_dense()->mutable_values());
  } else if (weight.has_csr()) {
    matrix.set_format("csr");
    add_places(weight.mutable_csr());
    add("values", weight.mutable_csr()->mutable_values());
  } else if (weight.has_pattern()) {
    matrix.set_format("pattern");
    add_places(weight.mutable_pattern());
  } else {
    return;
  }
  *weight.mutable_parts() = std::move(matrix);
}

// Errors quote these.
Status CheckPartNames(const packed::Matrix& matrix) {
  SWIZZLE_RETURN_IF_ERROR(CheckName(matrix.format(), "a format"));
  for (const packed::Scalar& scalar : matrix.scalars()) SWIZZLE_RETURN_IF_ERROR(CheckName(scalar.name(), "a scalar"));
  for (const packed::NamedArray& array : matrix.arrays()) SWIZZLE_RETURN_IF_ERROR(CheckName(array.name(), "an array"));
  return {};
}

StatusOr<Contents> ReadHeader(std::span<const std::byte> file) {
  SWIZZLE_ASSIGN_OR_RETURN(const PackedPrefix prefix, ReadPrefix(file));
  if (prefix.header_bytes > file.size() - sizeof(prefix)) {
    return InvalidArgument("the packed model is truncated: it has ", file.size(), " bytes, its header alone takes ",
                           sizeof(prefix) + prefix.header_bytes);
  }
  const auto bytes = file.subspan(sizeof(prefix), prefix.header_bytes);
  if (HeaderChecksum(prefix, bytes) != prefix.header_checksum) {
    return InvalidArgument("the packed model is damaged: the checksum of its header does not match");
  }
  Contents contents;
  contents.header_end = sizeof(prefix) + bytes.size();
  if (!contents.header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("the packed model's header does not parse");
  }
  for (packed::Weight& weight : *contents.header.mutable_weights()) {
    SplitIntoParts(weight);
    SWIZZLE_RETURN_IF_ERROR(CheckPartNames(weight.parts()));
  }
  for (const packed::Elements& tensor : contents.header.graph().tensors()) {
    SWIZZLE_RETURN_IF_ERROR(CheckPartNames(tensor.matrix().parts()));
  }
  return contents;
}

// Calls visit(name, array) for every array of a weight.
template <typename Visit>
void ForEachArray(const packed::Weight& weight, const Visit& visit) {
  for (const packed::NamedArray& named : weight.parts().arrays()) visit(named.name(), named.array());
  if (weight.has_bias()) visit("bias", weight.bias());
}

Status Place(uint64_t arrays_begin, uint64_t file_bytes, PlacedArray& placed) {
  const packed::Array& array = *placed.array;
  if (array.offset() % kPackedAlignment != 0) {
    return InvalidArgument(placed.what, " begin at offset ", array.offset(), ", which is not a multiple of ",
                           kPackedAlignment);
  }
  if (__builtin_add_overflow(arrays_begin, array.offset(), &placed.begin) ||
      __builtin_add_overflow(placed.begin, array.bytes(), &placed.end) || placed.end > file_bytes) {
    return InvalidArgument(placed.what, " (", array.bytes(), " bytes at offset ", array.offset(),
                           ") go beyond the end of the file; it is truncated or malformed");
  }
  return {};
}

StatusOr<std::vector<PlacedArray>> PlaceArrays(const Contents& contents, uint64_t file_bytes) {
  const uint64_t arrays_begin = AlignedUp(contents.header_end);
  std::vector<PlacedArray> arrays;
  const packed::Graph& graph = contents.header.graph();
  if (contents.header.has_graph()) arrays.push_back({.what = "the bytes of the graph", .array = &graph.model()});
  for (int i = 0; i < graph.tensors_size(); ++i) {
    const packed::Elements& tensor = graph.tensors(i);
    for (const packed::NamedArray& named : tensor.matrix().parts().arrays()) {
      arrays.push_back({.what = Concat("tensor ", i, ": its ", named.name()), .array = &named.array()});
    }
    if (tensor.has_matrix()) continue;
    if (tensor.has_occupied())
      arrays.push_back({.what = Concat("tensor ", i, ": its bits"), .array = &tensor.occupied()});
    arrays.push_back({.what = Concat("tensor ", i, ": its values"), .array = &tensor.values()});
  }
  for (int i = 0; i < contents.header.weights_size(); ++i) {
    ForEachArray(contents.header.weights(i), [&](const std::string& name, const packed::Array& array) {
      arrays.push_back({.what = Concat("weight ", i, ": its ", name), .array = &array});
    });
  }
  for (PlacedArray& array : arrays) SWIZZLE_RETURN_IF_ERROR(Place(arrays_begin, file_bytes, array));
  std::stable_sort(arrays.begin(), arrays.end(), [](const PlacedArray& a, const PlacedArray& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  return arrays;
}

// What stands between two arrays: only as many bytes as alignment takes, all zero, so that no byte goes unchecked.
Status CheckGap(std::span<const std::byte> file, uint64_t begin, const PlacedArray& next) {
  if (next.begin < begin) return InvalidArgument(next.what, " overlap what stands before them");
  const auto gap = file.subspan(begin, next.begin - begin);
  if (gap.size() >= kPackedAlignment) {
    return InvalidArgument(gap.size(), " bytes of the packed model belong to nothing");
  }
  if (std::any_of(gap.begin(), gap.end(), [](std::byte byte) { return byte != std::byte{0}; })) {
    return InvalidArgument("the packed model is damaged: there are bytes other than zero between its arrays");
  }
  return {};
}

Status CheckArrays(std::span<const std::byte> file, const Contents& contents) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto arrays, PlaceArrays(contents, file.size()));
  uint64_t end = contents.header_end;
  for (const PlacedArray& array : arrays) {
    SWIZZLE_RETURN_IF_ERROR(CheckGap(file, end, array));
    end = array.end;
    if (Checksum(file.subspan(array.begin, array.end - array.begin)) != array.array->checksum()) {
      return InvalidArgument("the packed model is damaged: ", array.what, " do not match their checksum");
    }
  }
  if (end != file.size()) {
    return InvalidArgument("the packed model has ", file.size() - end, " bytes after its end");
  }
  return {};
}

// Bounds what a small file can make others allocate.
Status CheckDenseSizes(const packed::Header& header) {
  int64_t total = 0;
  for (int i = 0; i < header.weights_size(); ++i) {
    const packed::Weight& weight = header.weights(i);
    const std::optional<Format> format = FormatFromName(weight.parts().format());
    if (format && !HasValues(*format)) continue;  // nothing makes it dense
    int64_t elements = 0;
    if (weight.rows() < 0 || weight.cols() < 0 || __builtin_mul_overflow(weight.rows(), weight.cols(), &elements) ||
        __builtin_add_overflow(total, elements, &total) || total > kMaxDenseElements) {
      return InvalidArgument("weight ", i, " of ", weight.rows(), " x ", weight.cols(),
                             " is impossible, or takes the weights above ", kMaxDenseElements, " elements in all");
    }
  }
  int64_t total_bytes = 0;
  for (int i = 0; i < header.graph().tensors_size(); ++i) {
    const packed::Elements& tensor = header.graph().tensors(i);
    int64_t bytes = 0;
    if (!tensor.has_matrix()) continue;
    if (tensor.elements() < 0 || tensor.elements() > kMaxDenseElements || tensor.element_bytes() < 1 ||
        __builtin_mul_overflow(tensor.elements(), int64_t{tensor.element_bytes()}, &bytes) ||
        __builtin_add_overflow(total_bytes, bytes, &total_bytes) || total_bytes > kMaxDenseBytes) {
      return InvalidArgument("tensor ", i, " of ", tensor.elements(), " elements is impossible, or takes the matrices ",
                             "above ", kMaxDenseBytes, " bytes in all");
    }
  }
  return {};
}

// Builds a graph from a header whose arrays have been checked to lie in the file.
class GraphUnpacker {
 public:
  GraphUnpacker(std::span<const std::byte> file, const Contents& contents)
      : graph_(contents.header.graph()), file_(file), arrays_begin_(AlignedUp(contents.header_end)) {}

  StatusOr<PackedGraph> Run() const {
    PackedGraph graph;
    SWIZZLE_ASSIGN_OR_RETURN(graph.model, BytesOf(graph_.model(), DType::kUint8));
    for (int i = 0; i < graph_.tensors_size(); ++i) {
      StatusOr<PackedElements> tensor = Unpack(graph_.tensors(i));
      if (!tensor.ok()) return Annotate(tensor.status(), Concat("tensor ", i));
      graph.tensors.push_back(*std::move(tensor));
    }
    for (const packed::NamedZeros& named : graph_.zeros()) {
      const InputZeros zeros = UnpackedZeros(named.zeros());
      SWIZZLE_RETURN_IF_ERROR(CheckName(named.value(), "a value"));
      SWIZZLE_RETURN_IF_ERROR(Annotate(Validate(zeros), Concat("value '", named.value(), "'")));
      graph.zeros[named.value()] = zeros;
    }
    return graph;
  }

 private:
  StatusOr<PackedElements> Unpack(const packed::Elements& proto) const {
    if (!proto.has_matrix()) return UnpackBits(proto);
    const packed::TensorMatrix& matrix = proto.matrix();
    const std::optional<Format> format = FormatFromName(matrix.parts().format());
    const std::optional<DType> dtype = DTypeFromName(matrix.datatype());
    if (!format || !HasValues(*format)) return InvalidArgument("it is in no format with values that is known here");
    MatrixElements made{.dtype = dtype.value_or(DType::kBool), .transposed = matrix.transposed()};
    if (!made.is_whole() && made.dtype != DType::kFloat32 && !IsHalf(made.dtype)) {
      return InvalidArgument("its elements are of no type that matrices have");
    }
    if (static_cast<size_t>(proto.element_bytes()) != ElementBytes(*dtype)) {
      return InvalidArgument("its elements are of ", proto.element_bytes(), " bytes, and of ", DTypeName(*dtype));
    }
    if (matrix.rows() < 1 || proto.elements() % matrix.rows() != 0) {
      return InvalidArgument("it has ", proto.elements(), " elements in ", matrix.rows(), " rows");
    }
    std::optional<Quantisation> wholes;
    if (made.is_whole()) {
      const auto filler = static_cast<uint8_t>(proto.filler());
      made.zero_point = made.dtype == DType::kInt8 ? static_cast<int8_t>(filler) : int32_t{filler};
      wholes = Quantisation{made.dtype, {1.0f}, {made.zero_point}};
    }
    MatrixParts parts(matrix.parts(), wholes, file_, arrays_begin_, made.is_whole() ? DType::kFloat32 : made.dtype);
    const MatrixSize size = {matrix.rows(), proto.elements() / matrix.rows()};
    SWIZZLE_ASSIGN_OR_RETURN(made.matrix, WeightMatrix::Read(*format, size, parts));
    if (made.is_whole() && !parts.gave_wholes() && made.matrix.nnz() > 0) {
      return InvalidArgument("its values are not of ", DTypeName(made.dtype));
    }
    SWIZZLE_RETURN_IF_ERROR(parts.CheckAllRead());
    return PackedElements(std::move(made));
  }

  StatusOr<PackedElements> UnpackBits(const packed::Elements& proto) const {
    CompressedElements made{proto.elements(), proto.element_bytes(), proto.filler(), {}, {}};
    if (proto.has_occupied()) {
      SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bits, BytesOf(proto.occupied(), DType::kUint64));
      made.occupied.resize(bits.size() / sizeof(uint64_t));
      if (!bits.empty()) std::memcpy(made.occupied.data(), bits.data(), made.occupied.size() * sizeof(uint64_t));
    }
    SWIZZLE_ASSIGN_OR_RETURN(made.values, BytesOf(proto.values(), DType::kUint8));
    SWIZZLE_RETURN_IF_ERROR(made.Validate());
    return PackedElements(std::move(made));
  }

  StatusOr<std::vector<std::byte>> BytesOf(const packed::Array& array, DType type) const {
    if (array.type() != PackedType(type) || array.bytes() % ElementBytes(type) != 0) {
      return InvalidArgument("an array of its is not one of ", DTypeName(type));
    }
    const auto bytes = file_.subspan(arrays_begin_ + array.offset(), array.bytes());
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }

  const packed::Graph& graph_;
  const std::span<const std::byte> file_;
  const uint64_t arrays_begin_;
};

// Builds the network from a header whose arrays have been checked to lie in the file.
class Unpacker {
 public:
  Unpacker(std::span<const std::byte> file, const Contents& contents)
      : header_(contents.header), file_(file), arrays_begin_(AlignedUp(contents.header_end)) {}

  StatusOr<Network> Run() {
    Network network;
    SWIZZLE_RETURN_IF_ERROR(CheckName(header_.producer(), "the producer"));
    network.producer = header_.producer();
    network.batch_size = header_.batch_size();
    for (const packed::Value& value : header_.values()) {
      SWIZZLE_RETURN_IF_ERROR(CheckName(value.name(), "a value"));
      network.values.push_back(
          {value.name(), value.channels(), value.height(), value.width(), value.per_token(), value.ids()});
      network.values.back().quantisation = UnpackedQuantisation(value);
      if (value.has_zeros()) network.values.back().zeros = UnpackedZeros(value.zeros());
    }
    for (const packed::Layer& layer : header_.layers()) {
      SWIZZLE_ASSIGN_OR_RETURN(network.layers.emplace_back(), UnpackLayer(layer));
    }
    for (int i = 0; i < header_.weights_size(); ++i) {
      StatusOr<Weight> weight = UnpackWeight(header_.weights(i));
      if (!weight.ok()) return Annotate(weight.status(), Concat("weight ", i));
      network.weights.push_back(*std::move(weight));
    }
    SetPatternSizes(network);
    for (const packed::Port& port : header_.inputs()) {
      SWIZZLE_ASSIGN_OR_RETURN(network.inputs.emplace_back(), UnpackPort(port));
    }
    for (const packed::Port& port : header_.outputs()) {
      SWIZZLE_ASSIGN_OR_RETURN(network.outputs.emplace_back(), UnpackPort(port));
    }
    if (header_.has_sequences()) network.sequences = UnpackSequences(header_.sequences());
    return network;
  }

 private:
  static SequenceEnd UnpackEnd(const packed::SequenceInputs& proto) {
    if (!proto.has_end()) return {};
    return {proto.end().input(), proto.end().at_largest(), proto.end().id()};
  }

  static SequenceInputs UnpackSequences(const packed::SequenceInputs& proto) {
    static_assert(FieldCount<SequenceInputs>() == 8, "what they have more than this stands below too");
    return {proto.length(),
            proto.has_mask() ? proto.mask() : -1,
            proto.masked_bias(),
            proto.skips_masked(),
            proto.has_counted() ? proto.counted() : -1,
            proto.padding(),
            proto.longest(),
            UnpackEnd(proto)};
  }

  static StatusOr<Layer> UnpackLayer(const packed::Layer& proto) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(proto.name(), "a layer"));
    static_assert(FieldCount<Layer>() == 5, "what a layer has more than this stands below too");
    StatusOr<Operator> unpacked = UnpackOperator(proto);
    if (!unpacked.ok()) return Annotate(unpacked.status(), Concat("layer '", proto.name(), "'"));
    Layer layer{*std::move(unpacked), proto.name(), {proto.inputs().begin(), proto.inputs().end()}, proto.output()};
    if (proto.has_weight()) layer.weight = proto.weight();
    return layer;
  }

  static StatusOr<NetworkPort> UnpackPort(const packed::Port& proto) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(proto.name(), "an input or output"));
    static_assert(FieldCount<NetworkPort>() == 4, "what a port has more than this stands below too");
    const std::optional<DType> dtype = DTypeFromName(proto.datatype());
    if (!dtype) return InvalidArgument("'", proto.name(), "': its datatype is not known");
    return NetworkPort{proto.name(), *dtype, Shape(proto.dims().begin(), proto.dims().end()), proto.value()};
  }

  StatusOr<Weight> UnpackWeight(const packed::Weight& proto) const {
    const std::optional<Format> format = FormatFromName(proto.parts().format());
    if (!format) return InvalidArgument("it is in no format that this program knows");
    Weight weight;
    weight.quantisation = UnpackedQuantisation(proto);
    MatrixParts parts(proto.parts(), weight.quantisation, file_, arrays_begin_);
    SWIZZLE_ASSIGN_OR_RETURN(weight.matrix, WeightMatrix::Read(*format, {proto.rows(), proto.cols()}, parts));
    SWIZZLE_RETURN_IF_ERROR(parts.CheckAllRead());
    if (parts.gave_wholes()) SWIZZLE_RETURN_IF_ERROR(Scale(weight));
    if (proto.has_bias()) {
      SWIZZLE_ASSIGN_OR_RETURN(const auto bytes, parts.Elements(proto.bias(), "bias", DType::kFloat32));
      weight.bias.resize(bytes.size() / sizeof(float));
      if (!bytes.empty()) std::memcpy(weight.bias.data(), bytes.data(), bytes.size());
    }
    return weight;
  }

  // From whole numbers to those that they stand for.
  static Status Scale(Weight& weight) {
    SWIZZLE_RETURN_IF_ERROR(weight.quantisation->Validate(weight.rows()));
    if (!weight.matrix.says_value_rows()) return InvalidArgument("no matrix of its format has whole numbers as values");
    weight.matrix = ScaledByRows(weight.matrix, *weight.quantisation);
    return {};
  }

  const packed::Header& header_;
  const std::span<const std::byte> file_;
  const uint64_t arrays_begin_;
};

}  // namespace

StatusOr<PackedModel> ReadPackedModel(std::span<const std::byte> file) {
  SWIZZLE_ASSIGN_OR_RETURN(const Contents contents, ReadHeader(file));
  SWIZZLE_RETURN_IF_ERROR(CheckDenseSizes(contents.header));
  SWIZZLE_RETURN_IF_ERROR(CheckArrays(file, contents));
  if (contents.header.has_graph()) {
    if (contents.header.layers_size() > 0 || contents.header.weights_size() > 0) {
      return InvalidArgument("the packed model has both a graph and layers");
    }
    return GraphUnpacker(file, contents).Run();
  }
  SWIZZLE_ASSIGN_OR_RETURN(Network network, Unpacker(file, contents).Run());
  SWIZZLE_RETURN_IF_ERROR(network.ValidateModel());
  return PackedModel(std::move(network));
}

StatusOr<Network> ReadPacked(std::span<const std::byte> file) {
  SWIZZLE_ASSIGN_OR_RETURN(PackedModel model, ReadPackedModel(file));
  if (auto* const network = std::get_if<Network>(&model)) return std::move(*network);
  return Unimplemented("the packed model holds a graph, which runs in regions");
}

}  // namespace swizzle
