#include "client/cli/input.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/npy.h"

namespace swizzle::client {
namespace {

constexpr int64_t kMaxDrawnBytes = int64_t{1} << 30;

template <typename T, typename Draw>
void Append(std::string& data, int64_t count, Draw draw) {
  for (int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(draw());
    data.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
}

// An integer of any width, little-endian.
void AppendInteger(std::string& data, size_t bytes, uint64_t value) {
  data.append(reinterpret_cast<const char*>(&value), bytes);
}

// How many ids of the plan the datatype holds.
uint64_t IdCount(const InputPlan& plan, size_t bytes) {
  const auto ids = static_cast<uint64_t>(plan.ids);
  return bytes < sizeof(uint64_t) ? std::min(ids, uint64_t{1} << (8 * bytes - 1)) : ids;
}

std::string DrawIntegers(const InputPlan& plan, int64_t count, std::mt19937_64& random) {
  const size_t bytes = DatatypeBytes(plan.datatype);
  std::string data;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t value = random() & 1;
    if (plan.values == InputPlan::Values::kOnes) value = 1;
    if (plan.values == InputPlan::Values::kIds) value = random() % IdCount(plan, bytes);
    AppendInteger(data, bytes, value);
  }
  return data;
}

std::string DrawStrings(int64_t count) {
  std::string data;
  for (int64_t i = 0; i < count; ++i) {
    AppendInteger(data, sizeof(uint32_t), sizeof("text") - 1);
    data += "text";
  }
  return data;
}

// Words that a vocabulary of English has as one token each, or nearly.
constexpr std::string_view kWords[] = {"the",   "of",    "and",   "to",    "in",     "was",   "he",    "his",
                                       "river", "house", "year",  "where", "city",   "small", "music", "water",
                                       "under", "light", "again", "story", "market", "early", "name",  "world"};

std::string DrawTexts(const InputPlan& plan, int64_t count, std::mt19937_64& random) {
  std::string data;
  for (int64_t i = 0; i < count; ++i) {
    std::string text;
    for (int64_t word = 0; word < plan.words; ++word) {
      text.append(text.empty() ? "" : " ").append(kWords[random() % std::size(kWords)]);
    }
    AppendInteger(data, sizeof(uint32_t), text.size());
    data += text;
  }
  return data;
}

std::string DrawData(const InputPlan& plan, int64_t count, std::mt19937_64& random) {
  std::string data;
  if (plan.datatype == "FP32") {
    Append<float>(data, count, [&] { return std::uniform_real_distribution<float>()(random); });
  } else if (plan.datatype == "FP64") {
    Append<double>(data, count, [&] { return std::uniform_real_distribution<double>()(random); });
  } else if (plan.datatype == "FP16") {
    Append<uint16_t>(data, count, [&] { return random() % 0x3c00; });  // bit patterns below 1.0
  } else if (plan.datatype == "BF16") {
    Append<uint16_t>(data, count, [&] { return random() % 0x3f80; });
  } else {
    const bool is_text = plan.values == InputPlan::Values::kTexts;
    data = is_text                    ? DrawTexts(plan, count, random)
           : plan.datatype == "BYTES" ? DrawStrings(count)
                                      : DrawIntegers(plan, count, random);
  }
  return data;
}

absl::StatusOr<Tensor> DrawInput(const InputPlan& plan, std::mt19937_64& random) {
  const int64_t most = kMaxDrawnBytes / static_cast<int64_t>(std::max<size_t>(DatatypeBytes(plan.datatype), 1));
  const absl::StatusOr<int64_t> count = ElementCount(plan.shape);
  if (!count.ok() || *count > most) {
    return UsageError(
        absl::StrCat("input '", plan.name, "' of shape ", ShapeText(plan.shape), " is too large to draw"));
  }
  return Tensor{plan.name, plan.datatype, plan.shape, DrawData(plan, *count, random)};
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> ReadInputs(const std::vector<std::string>& arguments) {
  std::vector<Tensor> inputs;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return UsageError(absl::StrCat("--input ", argument, " is not of the form NAME=FILE.npy"));
    }
    absl::StatusOr<Tensor> tensor = ReadNpy(argument.substr(equals + 1));
    if (!tensor.ok()) return AsUsageError(tensor.status());
    tensor->name = argument.substr(0, equals);
    inputs.push_back(*std::move(tensor));
  }
  return inputs;
}

absl::StatusOr<std::vector<Tensor>> DrawInputs(const std::vector<InputPlan>& plans, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> drawn;
  for (const InputPlan& plan : plans) {
    absl::StatusOr<Tensor> tensor = DrawInput(plan, random);
    if (!tensor.ok()) return tensor.status();
    drawn.push_back(*std::move(tensor));
  }
  return drawn;
}

}  // namespace swizzle::client
