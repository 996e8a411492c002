#include "model_loader/safetensors/safetensors_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/dtype_row.h"
#include "kernels/base/half_bits.h"
#include "model_loader/files/file_kind.h"
#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

static_assert(std::endian::native == std::endian::little);

using Json = nlohmann::json;

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kMaxRank = 64;  // PyTorch's

constexpr std::string_view kUnsupportedDTypes[] = {"F4",      "F6_E2M3",     "F6_E3M2", "F8_E4M3", "F8_E4M3FNUZ",
                                                   "F8_E5M2", "F8_E5M2FNUZ", "F8_E8M0", "C64"};

// What the header says of one tensor.
struct Entry {
  std::string name;
  std::optional<DType> dtype = std::nullopt;
  bool has_shape = false;
  Shape shape = {};
  std::vector<int64_t> offsets = {};

  std::string what() const { return Concat("tensor '", name, "'"); }
};

// Takes the header's JSON as it is parsed, so that a wrong header is refused at its first fault, before it has become
// anything larger. Each function returns false to stop, having set the error.
class HeaderHandler final : public nlohmann::json_sax<Json> {
 public:
  Status status() const { return status_; }
  std::vector<Entry> TakeEntries() { return std::move(entries_); }
  std::map<std::string, std::string> TakeMetadata() { return std::move(metadata_); }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) return Go(Place::kNames);
    if (place_ == Place::kNames) return Go(IsMetadata() ? Place::kMetadata : Place::kFields);
    return Unexpected("an object");
  }

  bool key(string_t& name) override {
    if (place_ == Place::kNames) return NewName(name);
    const std::string what =
        place_ == Place::kMetadata ? "a key of the metadata" : "a key of " + entries_.back().what();
    if (const Status printable = CheckName(name, what); !printable.ok()) return Fail(printable);
    if (!keys_.insert(name).second) return Fail(InvalidArgument(what, " is given twice: '", name, "'"));
    key_ = name;
    if (place_ == Place::kMetadata || name == "dtype" || name == "shape" || name == "data_offsets") return true;
    return Fail(InvalidArgument(what, " is '", name, "', which is not known"));
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) return metadata_.emplace(key_, value).second;
    if (place_ == Place::kFields && key_ == "dtype") return SetDType(value);
    return Unexpected("a string");
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kFields || key_ == "dtype") return Unexpected("a list");
    if (key_ == "shape") entries_.back().has_shape = true;
    return Go(Place::kList);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kList) return Unexpected("a number");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail(
          InvalidArgument(entries_.back().what(), ": its ", key_, " holds a number above the limit of 63 bits"));
    }
    const size_t limit = key_ == "shape" ? kMaxRank : 2;
    if (List().size() == limit) {
      return Fail(InvalidArgument(entries_.back().what(), ": its ", key_, " has more than ", limit, " numbers"));
    }
    List().push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(number_integer_t) override { return Unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Unexpected("a number that is not whole, or above the limit of 63 bits");
  }
  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a truth value"); }
  bool binary(binary_t&) override { return Unexpected("bytes"); }

  bool end_array() override { return Go(Place::kFields); }

  bool end_object() override {
    if (place_ == Place::kNames) return Go(Place::kEnd);
    if (place_ == Place::kFields && !IsComplete(entries_.back())) {
      return Fail(InvalidArgument(entries_.back().what(), " lacks its dtype, its shape or its two data_offsets"));
    }
    return Go(Place::kNames);
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return Fail(InvalidArgument("the header is not UTF-8 JSON, from its byte ", position, " on"));
  }

 private:
  // Where in the header the parser is.
  enum class Place { kStart, kNames, kMetadata, kFields, kList, kEnd };

  bool Go(Place place) {
    if (place == Place::kMetadata || (place == Place::kFields && place_ == Place::kNames)) keys_.clear();
    place_ = place;
    return true;
  }

  bool Fail(Status status) {
    status_ = std::move(status);
    return false;
  }

  bool Unexpected(const char* found) {
    switch (place_) {
      case Place::kMetadata:
        return Fail(InvalidArgument("the metadata '", key_, "' is ", found, "; it must be a string"));
      case Place::kFields:
      case Place::kList:
        return Fail(InvalidArgument(entries_.back().what(), ": its ", key_, " is or holds ", found));
      case Place::kNames:
        if (!IsMetadata())
          return Fail(InvalidArgument(entries_.back().what(), " is ", found, "; it must be an object"));
        return Fail(InvalidArgument("the metadata is ", found, "; it must be an object of strings"));
      case Place::kStart:
      case Place::kEnd:
        break;
    }
    return Fail(InvalidArgument("the header is ", found, "; it must be an object"));
  }

  bool IsMetadata() const { return name_ == "__metadata__"; }

  bool NewName(const std::string& name) {
    if (const Status printable = CheckName(name, "a tensor"); !printable.ok()) return Fail(printable);
    if (name.empty()) return Fail(InvalidArgument("a tensor has no name"));
    if (!names_.insert(name).second) return Fail(InvalidArgument("tensor '", name, "' is there twice"));
    name_ = name;
    if (!IsMetadata()) entries_.push_back({.name = name});
    return true;
  }

  bool SetDType(const std::string& text) {
    entries_.back().dtype = DTypeWhere(&DTypeRow::safetensors, text);
    if (entries_.back().dtype) return true;
    if (std::ranges::find(kUnsupportedDTypes, text) != std::end(kUnsupportedDTypes)) {
      return Fail(Unimplemented(entries_.back().what(), " has the dtype ", text, ", which is not supported"));
    }
    const std::string shown = CheckName(text, "").ok() ? Concat("'", text, "'") : "that is not printable";
    return Fail(InvalidArgument(entries_.back().what(), " has a dtype ", shown, ", which is not known"));
  }

  static bool IsComplete(const Entry& entry) { return entry.dtype && entry.has_shape && entry.offsets.size() == 2; }

  std::vector<int64_t>& List() { return key_ == "shape" ? entries_.back().shape : entries_.back().offsets; }

  Status status_;
  Place place_ = Place::kStart;
  std::string name_;  // the last key of the whole
  std::string key_;   // the last key inside
  std::set<std::string> names_;
  std::set<std::string> keys_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Of a file that does not begin as one of safetensors.
Status NotSafetensors(std::span<const std::byte> file, const std::string& why) {
  const std::string_view kind = KindOfFile(file);
  return InvalidArgument("this is not a safetensors file", kind.empty() ? why : Concat(", but ", kind));
}

StatusOr<std::string_view> Header(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return NotSafetensors(file, Concat(", or it is truncated: it has only ", file.size(), " bytes"));
  }
  uint64_t length;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxSafetensorsHeaderBytes) {
    return NotSafetensors(
        file, Concat(": its header would have ", length, " bytes; the limit is ", kMaxSafetensorsHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    return InvalidArgument("the file is truncated: its header has ", length, " bytes, but only ",
                           file.size() - kLengthBytes, " follow");
  }
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  // The parser would pass over a byte order mark, and take a zero byte for the end.
  if (!header.starts_with('{')) return InvalidArgument("the header does not begin with '{'");
  if (header.find('\0') != std::string::npos) return InvalidArgument("the header holds a zero byte");
  return header;
}

// The entry's size is as it says, and it begins where the one before it ended.
Status CheckExtent(const Entry& entry, int64_t previous_end) {
  const auto elements = ElementCount(entry.shape);
  if (!elements.ok()) return Annotate(elements.status(), entry.what());
  int64_t bytes;
  if (__builtin_mul_overflow(*elements, static_cast<int64_t>(ElementBytes(*entry.dtype)), &bytes)) {
    return InvalidArgument(entry.what(), " has more bytes than fit in 64 bits");
  }
  const std::vector<int64_t>& offsets = entry.offsets;
  if (offsets[1] < offsets[0] || offsets[1] - offsets[0] != bytes) {
    return InvalidArgument(entry.what(), " has data from ", offsets[0], " to ", offsets[1], ", but takes ", bytes,
                           " bytes by its shape ", ShapeText(entry.shape), " of ", DTypeName(*entry.dtype));
  }
  if (offsets[0] != previous_end) {
    return InvalidArgument(entry.what(), " begins at ", offsets[0], " of the data, but the tensor before it ends at ",
                           previous_end, ": tensors must neither overlap nor leave a gap");
  }
  return {};
}

template <typename From, typename Convert>
Tensor Converted(const Tensor& from, const Convert& convert) {
  Tensor to{DType::kFloat32, from.shape, std::vector<std::byte>(from.bytes.size() / sizeof(From) * sizeof(float))};
  const std::span<float> floats = to.floats();
  for (size_t i = 0; i < floats.size(); ++i) {
    From element;
    std::memcpy(&element, from.bytes.data() + i * sizeof(From), sizeof(From));
    floats[i] = convert(element);
  }
  return to;
}

}  // namespace

StatusOr<SafetensorsFile> ParseSafetensors(std::span<const std::byte> file) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string_view header, Header(file));
  HeaderHandler handler;
  if (!Json::sax_parse(header, &handler)) return handler.status();
  std::vector<Entry> entries = handler.TakeEntries();
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.offsets[0], entry.offsets[1]); });
  const std::span<const std::byte> data = file.subspan(kLengthBytes + header.size());
  int64_t end = 0;
  for (const Entry& entry : entries) {
    SWIZZLE_RETURN_IF_ERROR(CheckExtent(entry, end));
    end = entry.offsets[1];
  }
  if (static_cast<uint64_t>(end) != data.size()) {
    return InvalidArgument("the tensors take ", end, " bytes, but the file has ", data.size(),
                           " for them: it is truncated, or something was appended");
  }
  SafetensorsFile result;
  result.metadata = handler.TakeMetadata();
  for (Entry& entry : entries) {
    const auto begin = static_cast<size_t>(entry.offsets[0]), stop = static_cast<size_t>(entry.offsets[1]);
    result.tensors.emplace(std::move(entry.name),
                           TensorView{*entry.dtype, std::move(entry.shape), data.subspan(begin, stop - begin)});
  }
  return result;
}

Tensor CopyOf(const TensorView& view) { return {view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}}; }

StatusOr<Tensor> ToFloat32(Tensor tensor, const std::string& what) {
  if (tensor.dtype == DType::kFloat32) return tensor;
  if (tensor.dtype == DType::kFloat64) {
    return Converted<double>(tensor, [](double element) { return static_cast<float>(element); });
  }
  return VisitHalfOr(
      tensor.dtype,
      [&]<DType kHalf>() -> StatusOr<Tensor> { return Converted<uint16_t>(tensor, FloatOfHalfBits<kHalf>); },
      [&]() -> StatusOr<Tensor> {
        return Unimplemented(what, " is ", DTypeName(tensor.dtype), "; a floating-point type is needed");
      });
}

}  // namespace swizzle
