#include "model_loader/interpreter/operators/text.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "model_loader/interpreter/operators/operators.h"

namespace swizzle::interpreter {
namespace {

// Takes the first string off the bytes; nothing if they are too short.
std::optional<std::string_view> TakeString(std::span<const std::byte>& bytes) {
  uint32_t length;
  if (bytes.size() < sizeof(length)) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes = bytes.subspan(sizeof(length));
  if (bytes.size() < length) return std::nullopt;
  const std::string_view string(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length);
  return string;
}

// Of ASCII's letters; all others stay.
std::string InCase(std::string_view text, bool upper) {
  std::string changed(text);
  for (char& c : changed) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return changed;
}

}  // namespace

StatusOr<Array> CopyStrings(Memory& memory, const Shape& shape, std::span<const std::byte> bytes) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(shape));
  std::span<const std::byte> rest = bytes;
  for (int64_t i = 0; i < count; ++i) {
    if (!TakeString(rest)) return InvalidArgument("it has ", i, " strings for ", ShapeText(shape));
  }
  if (!rest.empty()) return InvalidArgument("it has ", rest.size(), " bytes behind its strings");
  SWIZZLE_ASSIGN_OR_RETURN(Array array, memory.AllocateStrings(shape, static_cast<int64_t>(bytes.size())));
  std::ranges::copy(bytes, array.data.get());
  return array;
}

std::vector<std::string_view> StringsOf(const Array& array) {
  std::vector<std::string_view> strings;
  std::span<const std::byte> rest = array.AsBytes();
  while (const std::optional<std::string_view> string = TakeString(rest)) strings.push_back(*string);
  return strings;
}

StatusOr<Array> ArrayOfStrings(Memory& memory, Shape shape, std::span<const std::string> strings) {
  int64_t bytes = 0;
  for (const std::string& string : strings) bytes += static_cast<int64_t>(sizeof(uint32_t) + string.size());
  SWIZZLE_ASSIGN_OR_RETURN(Array array, memory.AllocateStrings(std::move(shape), bytes));
  std::byte* to = array.data.get();
  for (const std::string& string : strings) {
    const auto length = static_cast<uint32_t>(string.size());
    std::memcpy(to, &length, sizeof(length));
    std::memcpy(to + sizeof(length), string.data(), string.size());
    to += sizeof(length) + string.size();
  }
  return array;
}

// Words that are no stop words, in upper or lower case; one empty string where none is left.
StatusOr<Array> StringNormalizer(Call& call) {
  const Array& x = call.In(0);
  if (!x.HasStrings() || x.rank() < 1 || x.rank() > 2 || (x.rank() == 2 && x.shape[0] != 1)) {
    return InvalidArgument("input 0 must be strings, [words] or [1,words]");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string change, call.String("case_change_action", "NONE"));
  if (change != "NONE" && change != "LOWER" && change != "UPPER") {
    return InvalidArgument("case_change_action is '", change, "'; it may be NONE, LOWER or UPPER");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t sensitive, call.Int("is_case_sensitive", 0));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<std::string> stops, StringsAttribute(call.node(), "stopwords"));
  const auto compared = [&](std::string_view word) { return sensitive != 0 ? std::string(word) : InCase(word, false); };
  for (std::string& stop : stops) stop = compared(stop);
  std::ranges::sort(stops);
  SWIZZLE_RETURN_IF_ERROR(call.New(DType::kUint8, {x.elements(), 64}));  // what the words take here, within the limits
  std::vector<std::string> words;
  for (const std::string_view word : StringsOf(x)) {
    if (std::ranges::binary_search(stops, compared(word))) continue;
    words.push_back(change == "NONE" ? std::string(word) : InCase(word, change == "UPPER"));
  }
  if (words.empty()) words.emplace_back();
  Shape shape = x.shape;
  shape.back() = static_cast<int64_t>(words.size());
  return ArrayOfStrings(call.memory(), std::move(shape), words);
}

}  // namespace swizzle::interpreter
