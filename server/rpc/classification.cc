#include "server/rpc/classification.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/half.h"
#include "model_loader/semantics/element_types.h"
#include "server/model/string_tensor.h"

namespace swizzle {
namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);  // before each text
constexpr size_t kIndexBytes = 2 + 20;             // two colons, and a number of 64 bits
constexpr int kFractionDigits = 6;                 // as printf's %f has them

// The longest text of a number: as long as its exponent says.
template <typename Float>
constexpr size_t kFloatBytes = std::numeric_limits<Float>::max_exponent10 + kFractionDigits + 8;
constexpr size_t kValueBytes = kFloatBytes<double>;

size_t ValueBytes(DType dtype) {
  if (dtype == DType::kFloat64) return kValueBytes;
  return IsFloating(dtype) ? kFloatBytes<float> : std::numeric_limits<uint64_t>::digits10 + 2;
}

bool HasOrder(DType dtype) { return dtype != DType::kString && dtype != DType::kBool; }

// What elements are compared and written as.
float Widened(HalfElement element) { return FloatOfHalf(element.bits); }
float Widened(Bfloat16Element element) { return FloatOfBfloat16(element.bits); }
uint8_t Widened(BoolElement element) { return element.byte; }
template <typename T>
T Widened(T element) {
  return element;
}

// Elements of a row where they are known, else no end of them.
int64_t ElementsOfRow(const TensorSpec& output) {
  const StatusOr<int64_t> elements = ElementCount(output.dims);
  const bool open = std::ranges::any_of(output.dims, [](int64_t dim) { return dim < 0; });
  return open || !elements.ok() ? std::numeric_limits<int64_t>::max() : *elements;
}

// A row of elements as they lie in an output, which need not be aligned.
template <typename T>
class Row {
 public:
  Row(const char* first, int64_t count) : first_(first), count_(count) {}

  auto At(int64_t index) const {
    T element;
    std::memcpy(&element, first_ + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return Widened(element);
  }

  bool IsBefore(int64_t a, int64_t b) const {
    const auto of_a = At(a), of_b = At(b);
    if constexpr (std::is_floating_point_v<decltype(At(0))>) {
      if (std::isnan(of_a) != std::isnan(of_b)) return std::isnan(of_b);
    }
    if (of_a > of_b || of_a < of_b) return of_a > of_b;
    return a < b;
  }

  // Indices of the best `classes`, best first.
  std::vector<int64_t> Best(int64_t classes) const {
    std::vector<int64_t> best(static_cast<size_t>(classes));
    std::iota(best.begin(), best.end(), 0);
    const auto is_before = [this](int64_t a, int64_t b) { return IsBefore(a, b); };
    // A heap of the best so far, whose front is the worst of them.
    std::make_heap(best.begin(), best.end(), is_before);
    for (int64_t i = classes; i < count_; ++i) {
      if (!IsBefore(i, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), is_before);
      best.back() = i;
      std::push_heap(best.begin(), best.end(), is_before);
    }
    std::sort_heap(best.begin(), best.end(), is_before);
    return best;
  }

 private:
  const char* first_;
  int64_t count_;
};

template <typename Value>
std::string_view ValueText(Value value, std::array<char, kValueBytes>& buffer) {
  std::to_chars_result written;
  if constexpr (std::is_floating_point_v<Value>) {
    written = std::to_chars(buffer.begin(), buffer.end(), static_cast<double>(value), std::chars_format::fixed,
                            kFractionDigits);
  } else {
    written = std::to_chars(buffer.begin(), buffer.end(), +value);
  }
  return {buffer.data(), static_cast<size_t>(written.ptr - buffer.data())};
}

template <typename T>
void AppendBest(const Row<T>& row, int64_t classes, const TensorSpec& output, std::string& tensor) {
  std::array<char, kValueBytes> buffer;
  std::string text;
  for (const int64_t index : row.Best(classes)) {
    text.assign(ValueText(row.At(index), buffer)).append(":").append(std::to_string(index));
    if (output.labels != nullptr && static_cast<size_t>(index) < output.labels->size()) {
      text.append(":").append((*output.labels)[static_cast<size_t>(index)]);
    }
    AppendElement(text, tensor);
  }
}

Status ClassifyOutput(const ModelSpec& spec, const RequestedOutput& asked, std::string& bytes, Shape& shape) {
  const TensorSpec& output = spec.outputs[asked.index];
  const bool batched = spec.max_batch_size > 0 && !shape.empty();
  const int64_t rows = batched ? shape.front() : 1;
  const auto count = static_cast<int64_t>(bytes.size() / ElementBytes(output.dtype));
  const int64_t of_row = rows == 0 ? 0 : count / rows;
  const int64_t classes = std::min(asked.classes, of_row);
  if (rows * of_row != count || classes * rows > kMostClassTexts) {
    return MakeError(StatusCode::kInternal, "output '", output.name, "' of model '", spec.name, "' has ", count,
                     " elements in ", rows, " rows, of which ", asked.classes,
                     " classes each cannot be made; ask for the tensor");
  }
  std::string texts;
  VisitElementType(output.dtype, [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < rows; ++i) {
      const char* const first = bytes.data() + static_cast<size_t>(i * of_row) * sizeof(T);
      AppendBest(Row<T>(first, of_row), classes, output, texts);
    }
  });
  bytes = std::move(texts);
  shape = batched ? Shape{rows, classes} : Shape{classes};
  return absl::OkStatus();
}

}  // namespace

Status CheckClasses(const ModelSpec& spec, const TensorSpec& output, int64_t classes, int64_t rows) {
  if (!HasOrder(output.dtype)) {
    return InvalidArgument("parameter 'classification' is for outputs of numbers; output '", output.name,
                           "' of model '", spec.name, "' is ", DTypeName(output.dtype));
  }
  if (std::min(classes, ElementsOfRow(output)) <= kMostClassTexts / rows) return absl::OkStatus();
  return InvalidArgument("parameter 'classification' of output '", output.name, "' of model '", spec.name,
                         "' asks for ", classes, " classes of ", rows, rows == 1 ? " row" : " rows", "; it may be ",
                         kMostClassTexts / rows, " at most");
}

int64_t MostClassBytes(const TensorSpec& output, int64_t classes, int64_t rows) {
  size_t longest = 0;
  if (output.labels != nullptr) {
    for (const std::string& label : *output.labels) longest = std::max(longest, label.size());
  }
  const size_t text = kLengthBytes + ValueBytes(output.dtype) + kIndexBytes + longest;
  return rows * std::min(classes, ElementsOfRow(output)) * static_cast<int64_t>(text);
}

Status Classify(const ModelSpec& spec, std::span<const RequestedOutput> outputs, Result& result) {
  for (const RequestedOutput& asked : outputs) {
    if (asked.classes == 0) continue;
    SWIZZLE_RETURN_IF_ERROR(ClassifyOutput(spec, asked, result.outputs[asked.index], result.shapes[asked.index]));
  }
  return absl::OkStatus();
}

}  // namespace swizzle
