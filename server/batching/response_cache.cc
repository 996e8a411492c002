#include "server/batching/response_cache.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace swizzle {
namespace {

// What the containers take beside the elements: of an answer, and of each of its tensors.
constexpr int64_t kAnswerBytes = 256, kTensorBytes = 96;

std::string_view TextOf(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

int64_t BytesOf(const std::vector<std::string>& tensors, const std::vector<Shape>& shapes) {
  int64_t bytes = 0;
  for (const std::string& tensor : tensors) bytes += kTensorBytes + static_cast<int64_t>(tensor.size());
  for (const Shape& shape : shapes) bytes += static_cast<int64_t>(shape.size() * sizeof(int64_t));
  return bytes;
}

}  // namespace

ResponseCache::Owner ResponseCache::NewOwner() {
  const MutexLock lock(mutex_);
  return ++last_owner_;
}

uint64_t ResponseCache::HashOf(std::span<const TensorView> inputs) {
  size_t hash = 0;
  for (const TensorView& input : inputs) {
    const std::string_view text = TextOf(input);
    hash = absl::HashOf(hash, input.shape, absl::string_view(text.data(), text.size()));
  }
  return hash;
}

bool ResponseCache::IsFor(const Answer& answer, std::span<const TensorView> inputs) {
  if (inputs.size() != answer.inputs.bytes.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].shape != answer.inputs.shapes[i] || TextOf(inputs[i]) != answer.inputs.bytes[i]) return false;
  }
  return true;
}

std::optional<Result> ResponseCache::Find(Owner owner, uint64_t hash, std::span<const TensorView> inputs) {
  std::shared_ptr<const Answer> answer;
  {
    const MutexLock lock(mutex_);
    const auto* const found = answers_.Find({owner, hash});
    if (found == nullptr) return std::nullopt;
    answer = *found;
  }
  if (!IsFor(*answer, inputs)) return std::nullopt;
  Result result;
  result.outputs = answer->outputs.bytes;
  result.shapes = answer->outputs.shapes;
  result.batch_rows = answer->batch_rows;
  return result;
}

void ResponseCache::Keep(Owner owner, uint64_t hash, std::span<const TensorView> inputs, const Result& result) {
  int64_t bytes = kAnswerBytes + BytesOf(result.outputs, result.shapes);
  for (const TensorView& input : inputs) {
    bytes += kTensorBytes + static_cast<int64_t>(input.bytes.size() + input.shape.size() * sizeof(int64_t));
  }
  if (bytes > most_bytes_) return;
  auto answer = std::make_shared<Answer>();
  for (const TensorView& input : inputs) {
    answer->inputs.bytes.emplace_back(TextOf(input));
    answer->inputs.shapes.push_back(input.shape);
  }
  answer->outputs = {result.outputs, result.shapes};
  answer->batch_rows = result.batch_rows;
  const MutexLock lock(mutex_);
  answers_.Keep({owner, hash}, std::move(answer), bytes);
}

void ResponseCache::Forget(Owner owner) {
  const MutexLock lock(mutex_);
  answers_.ForgetIf([owner](const Key& key) { return key.first == owner; });
}

int64_t ResponseCache::bytes() const {
  const MutexLock lock(mutex_);
  return answers_.bytes();
}

}  // namespace swizzle
