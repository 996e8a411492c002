#include "client/cli/input.h"

#include <random>
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

std::string DrawData(const std::string& datatype, int64_t count, std::mt19937_64& random) {
  std::string data;
  if (datatype == "FP32") {
    Append<float>(data, count, [&] { return std::uniform_real_distribution<float>()(random); });
  } else if (datatype == "FP64") {
    Append<double>(data, count, [&] { return std::uniform_real_distribution<double>()(random); });
  } else if (datatype == "FP16") {
    Append<uint16_t>(data, count, [&] { return random() % 0x3c00; });  // bit patterns below 1.0
  } else if (datatype == "BF16") {
    Append<uint16_t>(data, count, [&] { return random() % 0x3f80; });
  } else {
    const size_t padding = DatatypeBytes(datatype) - 1;
    for (int64_t i = 0; i < count; ++i) {
      data.push_back(static_cast<char>(random() & 1));
      data.append(padding, '\0');
    }
  }
  return data;
}

absl::StatusOr<Shape> BatchShape(const TensorMetadata& input, int64_t batch) {
  Shape shape = input.shape;
  if (!shape.empty() && shape[0] == -1) {
    shape[0] = batch;
  } else if (batch != 1) {
    return UsageError(absl::StrCat("input '", input.name, "' has the fixed shape ", ShapeText(input.shape),
                                   ", so --batch must be 1"));
  }
  for (const int64_t dimension : shape) {
    if (dimension >= 0) continue;
    return UsageError(absl::StrCat("input '", input.name, "' of shape ", ShapeText(input.shape),
                                   " has a free dimension; give --input ", input.name, "=FILE.npy"));
  }
  return shape;
}

absl::StatusOr<Tensor> DrawInput(const TensorMetadata& input, int64_t batch, std::mt19937_64& random) {
  absl::StatusOr<Shape> shape = BatchShape(input, batch);
  if (!shape.ok()) return shape.status();
  const size_t element_bytes = DatatypeBytes(input.datatype);
  if (element_bytes == 0) {
    return UsageError(absl::StrCat("can't draw input '", input.name, "' of datatype ", input.datatype,
                                   "; give --input ", input.name, "=FILE.npy"));
  }
  const absl::StatusOr<int64_t> count = ElementCount(*shape);
  if (!count.ok() || *count > kMaxDrawnBytes / static_cast<int64_t>(element_bytes)) {
    return UsageError(absl::StrCat("input '", input.name, "' of shape ", ShapeText(*shape), " is too large to draw"));
  }
  return Tensor{input.name, input.datatype, *std::move(shape), DrawData(input.datatype, *count, random)};
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

absl::StatusOr<std::vector<Tensor>> DrawInputs(const std::vector<TensorMetadata>& inputs, int64_t batch,
                                               uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> drawn;
  for (const TensorMetadata& input : inputs) {
    absl::StatusOr<Tensor> tensor = DrawInput(input, batch, random);
    if (!tensor.ok()) return tensor.status();
    drawn.push_back(*std::move(tensor));
  }
  return drawn;
}

}  // namespace swizzle::client
