#include "model_loader/files/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/dtype_row.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/files/read_file.h"

namespace swizzle {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kVersionBytes = 2;
constexpr size_t kAlignment = 64;  // of the data
constexpr size_t kMaxHeaderBytes = size_t{1} << 16;
constexpr size_t kMaxRank = 32;
constexpr int64_t kMaxFileBytes = int64_t{1} << 33;

Status Malformed(const char* what) { return InvalidArgument("this is not an .npy file: ", what); }

// The text of the header; `file` is advanced to the data.
StatusOr<std::string_view> TakeHeader(std::string_view& file) {
  if (!file.starts_with(kMagic)) return Malformed("it does not start with NumPy's signature");
  if (file.size() < kMagic.size() + kVersionBytes) return Malformed("it is truncated");
  const int major = static_cast<unsigned char>(file[kMagic.size()]);
  if (major != 1 && major != 2) return Unimplemented("the .npy format version ", major, " is not 1 or 2");
  file.remove_prefix(kMagic.size() + kVersionBytes);
  const size_t length_bytes = major == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
  if (file.size() < length_bytes) return Malformed("it is truncated");
  uint32_t length = 0;
  std::memcpy(&length, file.data(), length_bytes);
  file.remove_prefix(length_bytes);
  if (length > kMaxHeaderBytes || length > file.size()) return Malformed("its header is truncated or too long");
  const std::string_view header = file.substr(0, length);
  file.remove_prefix(length);
  return header;
}

// Reads the Python dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, in any order.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  StatusOr<NpyArray> Parse() {
    bool well_formed = Accept("{");
    while (well_formed && !Accept("}")) {
      well_formed = ParseEntry() && (Accept(",") || Peek('}'));
    }
    SkipSpace();
    if (!well_formed || !text_.empty() || keys_ != kAllKeys) {
      return Malformed("its header is not a dictionary of descr, fortran_order and shape");
    }
    if (column_major_ && array_.shape.size() > 1) {
      return Unimplemented("the array is in column-major order; save numpy.ascontiguousarray(array)");
    }
    const std::optional<DType> dtype = DTypeWhere(&DTypeRow::npy, descr_);
    if (!dtype) {
      return Unimplemented("the array is not of little-endian numbers or booleans; save array.astype('<f4')");
    }
    array_.dtype = *dtype;
    return std::move(array_);
  }

 private:
  enum Key : unsigned { kDescr = 1, kOrder = 2, kShape = 4, kAllKeys = 7 };

  // Each key may stand once.
  bool Take(Key key) {
    const bool is_new = (keys_ & key) == 0;
    keys_ |= key;
    return is_new;
  }

  bool ParseEntry() {
    if (Accept("'descr'")) return Take(kDescr) && Accept(":") && ParseDescr();
    if (Accept("'fortran_order'")) return Take(kOrder) && Accept(":") && ParseOrder();
    return Accept("'shape'") && Take(kShape) && Accept(":") && ParseShape();
  }

  bool ParseDescr() {
    if (!Accept("'")) return false;
    const size_t end = text_.find('\'');
    if (end == std::string_view::npos) return false;
    descr_ = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }

  bool ParseOrder() {
    column_major_ = Accept("True");
    return column_major_ || Accept("False");
  }

  bool ParseShape() {
    if (!Accept("(")) return false;
    while (!Accept(")")) {
      if (!ParseDimension() || !(Accept(",") || Peek(')'))) return false;
    }
    return true;
  }

  bool ParseDimension() {
    SkipSpace();
    uint64_t dimension = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dimension);
    if (error != std::errc() || dimension > uint64_t{INT64_MAX} || array_.shape.size() == kMaxRank) return false;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    array_.shape.push_back(static_cast<int64_t>(dimension));
    return true;
  }

  void SkipSpace() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n\t"), text_.size())); }

  bool Peek(char c) {
    SkipSpace();
    return text_.starts_with(c);
  }

  bool Accept(std::string_view token) {
    SkipSpace();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  std::string_view text_;
  unsigned keys_ = 0;
  std::string_view descr_;
  bool column_major_ = false;
  NpyArray array_;
};

// "(2, 3)", "(2,)" or "()".
std::string TupleText(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += Concat(i == 0 ? "" : ", ", shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace

StatusOr<NpyArray> ParseNpy(std::span<const std::byte> file) {
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  SWIZZLE_ASSIGN_OR_RETURN(const std::string_view header, TakeHeader(text));
  SWIZZLE_ASSIGN_OR_RETURN(NpyArray array, HeaderParser(header).Parse());
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(array.shape));
  const size_t element_bytes = ElementBytes(array.dtype);
  if (text.size() % element_bytes != 0 || static_cast<int64_t>(text.size() / element_bytes) != elements) {
    return InvalidArgument("the .npy file has ", text.size(), " bytes of data; ", ShapeText(array.shape), " of ",
                           DTypeName(array.dtype), " take other than that");
  }
  const auto data = file.last(text.size());
  array.bytes.assign(data.begin(), data.end());
  return array;
}

StatusOr<std::vector<std::byte>> FormatNpy(const TensorView& array) {
  const std::string_view type = RowOf(array.dtype).npy;
  if (type.empty()) return Unimplemented("NumPy has no type for ", DTypeName(array.dtype));
  std::string header =
      Concat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", TupleText(array.shape), ", }");
  const size_t header_begin = kMagic.size() + kVersionBytes + sizeof(uint16_t);
  const size_t unpadded = header_begin + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  const uint16_t length = static_cast<uint16_t>(header.size());

  std::vector<std::byte> file(header_begin + header.size() + array.bytes.size());
  std::memcpy(file.data(), kMagic.data(), kMagic.size());
  file[kMagic.size()] = std::byte{1};
  std::memcpy(file.data() + header_begin - sizeof(length), &length, sizeof(length));
  std::memcpy(file.data() + header_begin, header.data(), header.size());
  std::copy(array.bytes.begin(), array.bytes.end(), file.end() - static_cast<int64_t>(array.bytes.size()));
  return file;
}

StatusOr<NpyArray> ReadNpy(const std::filesystem::path& file) {
  const StatusOr<std::vector<std::byte>> bytes = ReadFile(file, kMaxFileBytes);
  if (!bytes.ok()) return bytes.status();
  StatusOr<NpyArray> array = ParseNpy(*bytes);
  if (!array.ok()) return Annotate(array.status(), file.string());
  return array;
}

Status WriteNpy(const std::filesystem::path& file, const TensorView& array) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, FormatNpy(array));
  return WriteFileAtomically(file, bytes);
}

}  // namespace swizzle
