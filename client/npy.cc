#include "client/npy.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace swizzle::client {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 1 << 16;

struct NpyType {
  std::string_view descr;  // without the byte order
  const char* datatype;
};

constexpr NpyType kTypes[] = {
    {"b1", "BOOL"},  {"u1", "UINT8"}, {"u2", "UINT16"}, {"u4", "UINT32"}, {"u8", "UINT64"}, {"i1", "INT8"},
    {"i2", "INT16"}, {"i4", "INT32"}, {"i8", "INT64"},  {"f2", "FP16"},   {"f4", "FP32"},   {"f8", "FP64"},
};

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError("not a usable .npy file: " + what);
}

// The dictionary in a header is Python text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. This reads
// exactly what NumPy writes.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  bool Skip(std::string_view token) {
    SkipSpaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  // 'text' without escapes.
  std::optional<std::string_view> String() {
    if (!Skip("'")) return std::nullopt;
    const size_t end = text_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view value = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return value;
  }

  std::optional<bool> Bool() {
    if (Skip("True")) return true;
    if (Skip("False")) return false;
    return std::nullopt;
  }

  std::optional<int64_t> Number() {
    SkipSpaces();
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      if (digits == 18) return std::nullopt;  // 10^18 still fits
      value = value * 10 + (text_[digits] - '0');
    }
    text_.remove_prefix(digits);
    return digits == 0 ? std::nullopt : std::optional(value);
  }

  // (2, 3), (2,) or ().
  std::optional<Shape> Tuple() {
    if (!Skip("(")) return std::nullopt;
    Shape shape;
    while (!Skip(")")) {
      const std::optional<int64_t> dimension = Number();
      if (!dimension || shape.size() == 32) return std::nullopt;
      shape.push_back(*dimension);
      if (!Skip(",")) {
        if (!Skip(")")) return std::nullopt;
        break;
      }
    }
    return shape;
  }

 private:
  void SkipSpaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }

  std::string_view text_;
};

struct Header {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

absl::StatusOr<Header> ParseHeader(std::string_view text) {
  HeaderReader reader(text);
  Header header;
  if (!reader.Skip("{")) return Malformed("its header is not a dictionary");
  while (!reader.Skip("}")) {
    const std::optional<std::string_view> key = reader.String();
    if (!key || !reader.Skip(":")) return Malformed("its header can't be read");
    if (*key == "descr") {
      header.descr = reader.String();
      if (!header.descr) return Malformed("it holds records, not numbers; save one plain array");
    } else if (*key == "fortran_order") {
      header.fortran_order = reader.Bool();
    } else if (*key == "shape") {
      header.shape = reader.Tuple();
    } else {
      return Malformed(absl::StrCat("its header has the unknown entry '", std::string(*key), "'"));
    }
    if (!reader.Skip(",") && !reader.Skip("}")) return Malformed("its header can't be read");
    if (header.descr && header.fortran_order && header.shape) return header;
  }
  return Malformed("its header lacks descr, fortran_order or shape");
}

absl::StatusOr<std::string> DatatypeOf(std::string_view descr) {
  const bool one_byte = descr.ends_with("1");
  if (!descr.empty() && (descr[0] == '<' || descr[0] == '|' || (one_byte && descr[0] == '>'))) {
    for (const NpyType& type : kTypes) {
      if (descr.substr(1) == type.descr) return std::string(type.datatype);
    }
  }
  return Malformed(absl::StrCat("its elements are of type '", std::string(descr),
                                "'; convert to a little-endian number type, as with .astype('<f4')"));
}

// The length of the header and where it begins, by the version of the format.
absl::StatusOr<std::pair<size_t, size_t>> HeaderExtent(const std::string& bytes) {
  if (bytes.size() < 10 || std::string_view(bytes).substr(0, kMagic.size()) != kMagic) {
    return Malformed("it does not begin as one");
  }
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) return Malformed(absl::StrCat("format version ", version, " is not known"));
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t begin = 8 + length_bytes;
  if (bytes.size() < begin) return Malformed("it is cut off");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  if (length > kMaxHeaderBytes || length > bytes.size() - begin) return Malformed("its header is cut off");
  return std::pair<size_t, size_t>(length, begin);
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(std::string bytes) {
  const auto extent = HeaderExtent(bytes);
  if (!extent.ok()) return extent.status();
  const auto [length, begin] = *extent;
  const absl::StatusOr<Header> header = ParseHeader(std::string_view(bytes).substr(begin, length));
  if (!header.ok()) return header.status();
  if (*header->fortran_order && header->shape->size() > 1) {
    return Malformed("it is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  absl::StatusOr<std::string> datatype = DatatypeOf(*header->descr);
  if (!datatype.ok()) return datatype.status();
  Tensor tensor{"", *std::move(datatype), *header->shape, ""};
  bytes.erase(0, begin + length);  // `header` views into what goes here, and is not used again
  tensor.data = std::move(bytes);
  const absl::Status status = Check(tensor);
  if (!status.ok()) return Malformed(std::string(status.message()));
  return tensor;
}

absl::StatusOr<Tensor> ReadNpy(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return absl::NotFoundError(absl::StrCat("there is no file ", file.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream) return absl::InvalidArgumentError(absl::StrCat("can't read ", file.string()));
  absl::StatusOr<Tensor> tensor = ParseNpy(std::move(bytes));
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(), absl::StrCat(file.string(), ": ", tensor.status().message()));
}

absl::StatusOr<std::string> FormatNpy(const Tensor& tensor) {
  if (const absl::Status status = Check(tensor); !status.ok()) return status;
  std::string_view descr;
  for (const NpyType& type : kTypes) {
    if (tensor.datatype == type.datatype) descr = type.descr;
  }
  if (descr.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("NumPy has no type for ", tensor.datatype, " of tensor '", tensor.name, "'"));
  }
  std::string header = absl::StrCat("{'descr': '", descr.ends_with('1') ? "|" : "<", std::string(descr),
                                    "', 'fortran_order': False, 'shape': (");
  for (const int64_t dimension : tensor.shape) absl::StrAppend(&header, dimension, ",");
  absl::StrAppend(&header, "), }");
  // NumPy aligns the data to 64 bytes and ends the header with a new line.
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header.push_back('\n');
  const uint16_t length = static_cast<uint16_t>(header.size());
  std::string bytes(kMagic);
  bytes.append({'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)});
  return bytes + header + tensor.data;
}

absl::Status WriteNpy(const std::filesystem::path& file, const Tensor& tensor) {
  const absl::StatusOr<std::string> bytes = FormatNpy(tensor);
  if (!bytes.ok()) return bytes.status();
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
  stream.close();
  if (!stream) return absl::InvalidArgumentError(absl::StrCat("can't write ", file.string()));
  return absl::OkStatus();
}

}  // namespace swizzle::client
