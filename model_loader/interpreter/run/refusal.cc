#include "model_loader/interpreter/run/refusal.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "model_loader/graph/operator_table.h"
#include "model_loader/interpreter/run/executor.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::interpreter {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 16;  // of an input in a trial
constexpr int64_t kMostTrials = int64_t{1} << 16;
constexpr std::chrono::milliseconds kTrialTime(300);

bool HasGraphs(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const auto& attribute) {
    return std::holds_alternative<std::shared_ptr<const Body>>(attribute.second);
  });
}

// Whether it may depend on elements of this type whether the operator takes its inputs: indices, counts, conditions.
bool ElementsMatter(const Node& node, DType dtype) {
  if (dtype == DType::kString) return true;
  constexpr std::string_view kByNumbers[] = {"MelWeightMatrix", "NonMaxSuppression", "OneHot",  "Range",
                                             "Resize",          "RoiAlign",          "Upsample"};
  if (IsFloating(dtype)) return std::ranges::find(kByNumbers, node.op) != std::end(kByNumbers);
  constexpr std::string_view kByFlags[] = {"Compress", "Dropout", "If", "Loop"};
  if (ElementBytes(dtype) == 1) return std::ranges::find(kByFlags, node.op) != std::end(kByFlags);
  constexpr std::string_view kByDivisors[] = {"BitShift", "Div", "Mod", "Pow"};
  const OnnxOperator* const row = FindOnnxOperator(node.domain, node.op);
  const bool by_element = row != nullptr && row->interpreter.rows == RowRule::kElementwise;
  return !by_element || std::ranges::find(kByDivisors, node.op) != std::end(kByDivisors);
}

void AddNumbers(std::span<const int64_t> numbers, std::set<int64_t>& sizes) {
  constexpr int64_t kMostSize = int64_t{1} << 24;
  int64_t sum = 0, product = 1;
  for (const int64_t number : numbers) {
    const int64_t size = std::clamp<int64_t>(number, -kMostSize, kMostSize);
    sizes.insert(std::abs(size));
    sum = std::clamp(sum + size, -kMostSize, kMostSize);
    if (size > 0) product = std::min(product * size, kMostSize);
  }
  sizes.insert({std::abs(sum), product});
}

std::set<int64_t> AttributeSizes(const Node& node) {
  std::set<int64_t> sizes;
  for (const auto& [name, attribute] : node.attributes) {
    if (const auto* one = std::get_if<int64_t>(&attribute)) AddNumbers({one, 1}, sizes);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) AddNumbers(*list, sizes);
  }
  sizes.erase(0);
  return sizes;
}

// Lists of a few numbers: shapes, lengths, axes.
void AddListed(const Array& array, std::set<int64_t>& sizes) {
  constexpr int64_t kMostListed = 64;
  if (array.rank() > 1 || array.elements() > kMostListed) return;
  if (array.moved != nullptr || array.place != Place::kHost) return;
  if (array.dtype == DType::kInt64) AddNumbers(array.As<int64_t>(), sizes);
  if (array.dtype != DType::kInt32) return;
  const auto narrow = array.As<int32_t>();
  AddNumbers(std::vector<int64_t>(narrow.begin(), narrow.end()), sizes);
}

class Trials {
 public:
  Trials(const Node& node, std::span<const Operand> operands, Memory& memory,
         const std::function<Status(std::span<const Array>)>& run)
      : operands_(operands), memory_(memory), run_(run) {
    std::vector<Array> given;
    for (const Operand& operand : operands) {
      given.push_back(operand.given);
      free_ += static_cast<size_t>(std::ranges::count(operand.free, true));
      elements_matter_ |= operand.free_elements && ElementsMatter(node, operand.given.dtype);
    }
    for (const int64_t few : {1, 2, 3, 8}) sizes_.push_back(few);
    std::ranges::copy(SizesAround(node, given), std::back_inserter(sizes_));
    std::ranges::sort(sizes_);
    sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
  }

  bool AllFail() {
    for (int element = 0; element < 2; ++element) {
      if (!Fails(GivenSizes(), element)) return false;
      for (const int64_t size : sizes_) {
        if (free_ > 0 && !Fails(std::vector<int64_t>(free_, size), element)) return false;
      }
    }
    if (made_ == 0) return false;
    if (free_ == 0 && !elements_matter_) return true;
    // What depends on neither sizes nor elements is said of all of them alike.
    const bool alike = said_.size() == 1 && made_ > 1;
    if (elements_matter_) return alike;
    const std::optional<bool> fail = SweepsFail();
    if (!fail || !*fail) return fail ? false : alike;
    const std::optional<bool> all = CombinationsFail();
    return all ? *all : alike;
  }

 private:
  std::vector<int64_t> GivenSizes() const {
    std::vector<int64_t> sizes;
    for (const Operand& operand : operands_) {
      for (size_t d = 0; d < operand.free.size(); ++d) {
        if (operand.free[d]) sizes.push_back(operand.given.shape[d]);
      }
    }
    return sizes;
  }

  bool IsLate() const { return std::chrono::steady_clock::now() - start_ > kTrialTime; }

  // Each dimension of many sizes, the others as given, or all alike. Nothing where there is no time for it.
  std::optional<bool> SweepsFail() {
    constexpr int64_t kMostSwept = 256;
    const std::array<std::vector<int64_t>, 3> others = {GivenSizes(), std::vector<int64_t>(free_, 1),
                                                        std::vector<int64_t>(free_, 2)};
    for (const std::vector<int64_t>& other : others) {
      for (size_t i = 0; i < free_; ++i) {
        std::vector<int64_t> sizes = other;
        for (int64_t size = 1; size <= kMostSwept; ++size) {
          sizes[i] = size;
          if (!Fails(sizes, 0)) return false;
          if (IsLate()) return std::nullopt;
        }
      }
    }
    return true;
  }

  // All combinations of sizes. Nothing where there are too many.
  std::optional<bool> CombinationsFail() {
    int64_t combinations = 1;
    for (size_t i = 0; i < free_ && combinations <= kMostTrials; ++i) combinations *= std::ssize(sizes_);
    if (combinations > kMostTrials) return std::nullopt;
    for (int64_t c = 0; c < combinations; ++c) {
      std::vector<int64_t> drawn;
      int64_t rest = c;
      for (size_t i = 0; i < free_; ++i, rest /= std::ssize(sizes_)) {
        drawn.push_back(sizes_[static_cast<size_t>(rest % std::ssize(sizes_))]);
      }
      if (!Fails(drawn, 0)) return false;
      if (IsLate()) return std::nullopt;
    }
    return true;
  }

  // Nothing if it cannot be made.
  std::optional<Array> Filled(const Operand& operand, Shape shape, int element) {
    for (const int64_t extent : shape) {
      if (extent > kMostElements) return std::nullopt;
    }
    const StatusOr<int64_t> count = ElementCount(shape);
    if (!count.ok() || *count > kMostElements) return std::nullopt;
    const DType dtype = operand.given.dtype;
    const bool text = dtype == DType::kString;  // empty strings
    StatusOr<Array> array = text ? memory_.AllocateStrings(shape, *count * static_cast<int64_t>(sizeof(uint32_t)))
                                 : memory_.Allocate(dtype, shape);
    if (!array.ok()) return std::nullopt;
    std::memset(array->data.get(), 0, static_cast<size_t>(array->bytes()));
    if (element == 0 || text) return *std::move(array);
    VisitElementType(dtype, [&]<typename T>(T) { std::ranges::fill(array->Mutable<T>(), Narrowed<T>(int64_t{1})); });
    return *std::move(array);
  }

  // Or cannot be made.
  bool Fails(const std::vector<int64_t>& sizes, int element) {
    std::vector<Array> inputs;
    size_t next = 0;
    for (const Operand& operand : operands_) {
      if (operand.IsFixed()) {
        inputs.push_back(operand.given);
        continue;
      }
      Shape shape = operand.given.shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (operand.free[d]) shape[d] = sizes[next++];
      }
      std::optional<Array> array = Filled(operand, std::move(shape), element);
      if (!array) return true;
      inputs.push_back(*std::move(array));
    }
    const Status status = run_(inputs);
    if (status.ok()) return false;
    if (status.code() == StatusCode::kResourceExhausted) return true;
    said_.emplace(status.message());
    ++made_;
    return true;
  }

  const std::span<const Operand> operands_;
  Memory& memory_;
  const std::function<Status(std::span<const Array>)>& run_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  size_t free_ = 0;  // dimensions
  bool elements_matter_ = false;
  std::vector<int64_t> sizes_;
  std::set<std::string> said_;
  int made_ = 0;  // trials; others are too large
};

}  // namespace

bool Operand::IsFixed() const {
  return given.IsLeftOut() || given.IsSequence() || (!free_elements && std::ranges::find(free, true) == free.end());
}

std::vector<int64_t> SizesAround(const Node& node, std::span<const Array> inputs) {
  constexpr size_t kMostSizes = 96;
  const std::set<int64_t> attributes = AttributeSizes(node);
  std::set<int64_t> sizes = attributes;
  for (const Array& input : inputs) {
    if (input.IsLeftOut() || input.IsSequence()) continue;
    sizes.insert(input.shape.begin(), input.shape.end());
    AddListed(input, sizes);
  }
  sizes.erase(0);
  // Windows reach over a product of kernel and dilation, blocks and groups divide by one, shapes share their elements.
  const std::vector<int64_t> single(sizes.begin(), sizes.end());
  for (const int64_t a : single) {
    for (const int64_t b : single) {
      if (sizes.size() >= kMostSizes) break;
      if (attributes.contains(a) && a < (int64_t{1} << 20) / b) sizes.insert(a * b);
      if (a % b == 0) sizes.insert(a / b);
    }
  }
  return {sizes.begin(), sizes.end()};
}

bool RefusesAlways(const Node& node, std::span<const Operand> operands, Memory& memory,
                   const std::function<Status(std::span<const Array>)>& run) {
  std::vector<Operand> tried(operands.begin(), operands.end());
  const bool by_elements = std::ranges::any_of(tried, [&](const Operand& operand) {
    return operand.free_elements && ElementsMatter(node, operand.given.dtype);
  });
  // Of elements no more than two are tried: what is refused for them and sizes together differs with sizes.
  for (Operand& operand : tried) {
    if (by_elements && !operand.IsFixed()) operand.free.assign(operand.free.size(), true);
  }
  return Trials(node, tried, memory, run).AllFail();
}

Status NoRequestHelps(const Status& said) {
  if (said.code() == StatusCode::kFailedPrecondition) return said;
  const bool is_lacking = said.code() == StatusCode::kUnimplemented;
  return MakeError(StatusCode::kFailedPrecondition, std::string(said.message()),
                   is_lacking ? "; the server lacks that, and no request can do without it"
                              : "; the model is at fault, and no request can help it: correct it, or export it again");
}

bool Verdicts::RefusesAlways(size_t node, const std::function<bool()>& find) {
  std::atomic<uint8_t>& verdict = verdicts_[node];
  if (verdict == kUnknown) verdict = find() ? kAlways : kSometimes;
  return verdict == kAlways;
}

Status Program::Blamed(size_t index, const Inputs& inputs, Memory& memory, Stream& stream, const Status& said) const {
  const Node& node = graph_.nodes[index];
  if (said.code() != StatusCode::kInvalidArgument || HasGraphs(node)) return said;
  const auto find = [&] {
    std::vector<Operand> operands;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto is_it = [&](const auto& constant) { return constant.first == node.inputs[i]; };
      const bool is_constant = std::ranges::any_of(constants_, is_it);
      operands.push_back({inputs[i], std::vector<bool>(inputs[i].shape.size(), !is_constant), !is_constant});
    }
    return interpreter::RefusesAlways(node, operands, memory, [&](std::span<const Array> tried) {
      return Compute(index, tried, memory, stream).status();
    });
  };
  return verdicts_->RefusesAlways(index, find) ? NoRequestHelps(said) : said;
}

}  // namespace swizzle::interpreter
