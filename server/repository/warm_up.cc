#include "server/repository/warm_up.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "kernels/base/half_bits.h"
#include "model_loader/files/contained_file.h"
#include "model_loader/files/printable_name.h"
#include "server/config/config_tensors.h"
#include "server/model/input_default.h"
#include "server/model/prepared_request.h"
#include "server/model/string_tensor.h"
#include "server/model/wire_shape.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

using SampleInput = inference::ModelWarmup::Input;

constexpr int64_t kMaxInputBytes = int64_t{1} << 30;

// The same numbers each time.
class Drawn {
 public:
  float Number() { return std::uniform_real_distribution<float>(-1.0f, 1.0f)(generator_); }
  uint8_t Bit() { return static_cast<uint8_t>(generator_() & 1u); }
  std::string Word() {
    std::string word(1 + generator_() % 8, ' ');
    for (char& letter : word) letter = static_cast<char>('a' + generator_() % 26);
    return word;
  }

 private:
  std::mt19937 generator_;
};

template <typename T>
void Append(T value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Takes all that a decoupled model answers.
class UnreadAnswers final : public AnswerSink {
 public:
  bool Emit(std::vector<std::string>, std::vector<Shape>) override { return true; }
  bool begun() const override { return false; }  // nothing that failed is run again
};

// Whole numbers are 0 and 1, which are in the range of any table of ids, and masks.
void AppendDrawn(DType dtype, Drawn& drawn, std::string& bytes) {
  switch (dtype) {
    case DType::kFloat32:
      return Append(drawn.Number(), bytes);
    case DType::kFloat64:
      return Append(static_cast<double>(drawn.Number()), bytes);
    case DType::kFloat16:
    case DType::kBFloat16:
      return Append(HalfBits(drawn.Number(), dtype), bytes);
    case DType::kString:
      return AppendElement(drawn.Word(), bytes);
    case DType::kBool:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      bytes.push_back(static_cast<char>(drawn.Bit()));
      bytes.append(ElementBytes(dtype) - 1, '\0');
  }
}

// The elements of one row.
StatusOr<std::string> BytesOf(const SampleInput& input, DType dtype, int64_t count, const fs::path& folder) {
  const size_t least_bytes = dtype == DType::kString ? sizeof(uint32_t) : ElementBytes(dtype);  // of an element
  if (count > kMaxInputBytes / static_cast<int64_t>(least_bytes)) {
    return InvalidArgument("has ", count, " elements; it may have ", kMaxInputBytes, " bytes at most");
  }
  std::string bytes;
  switch (input.input_data_type_case()) {
    case SampleInput::kZeroData:
      return std::string(static_cast<size_t>(count) * least_bytes, '\0');
    case SampleInput::kRandomData: {
      Drawn drawn;
      for (int64_t i = 0; i < count; ++i) AppendDrawn(dtype, drawn, bytes);
      return bytes;
    }
    case SampleInput::kInputDataFile:
      break;
    case SampleInput::INPUT_DATA_TYPE_NOT_SET:
      return InvalidArgument("has no data; give zero_data, random_data or input_data_file");
  }
  SWIZZLE_ASSIGN_OR_RETURN(
      bytes, ContainedFile::Read({folder / "warmup", {}}, input.input_data_file(), "its file", kMaxInputBytes));
  const bool fits = dtype == DType::kString ? IsStringTensor(std::as_bytes(std::span(bytes)), count)
                                            : bytes.size() == static_cast<size_t>(count) * ElementBytes(dtype);
  if (fits) return bytes;
  return InvalidArgument("has a file of ", bytes.size(), " bytes, which are not ", count, " elements of ",
                         DTypeName(dtype));
}

// What requests have of an input whose row a sample gives.
Shape WireShapeOf(const SampleInput& input, const ModelSpec& spec) {
  Shape shape(input.dims().begin(), input.dims().end());
  shape.insert(shape.begin(), BatchDims(spec), 1);
  return shape;
}

StatusOr<TensorView> ViewOf(const SampleInput& input, const TensorSpec& tensor, const ModelSpec& spec,
                            const fs::path& folder, std::string& bytes) {
  const Shape row(input.dims().begin(), input.dims().end());
  const StatusOr<int64_t> count = ElementCount(row);
  TensorView view{tensor.dtype, WireShapeOf(input, spec), {}};
  if (DTypeOf(input.data_type()) != tensor.dtype || !count.ok() || !ShapeFits(spec, tensor, view.shape)) {
    const auto given = DTypeOf(input.data_type());
    return InvalidArgument("is ", given ? DTypeName(*given) : "of no type", " ", ShapeText(row), "; ",
                           DTypeName(tensor.dtype), " ", ShapeText(tensor.wire_dims()), " is expected");
  }
  SWIZZLE_ASSIGN_OR_RETURN(bytes, BytesOf(input, tensor.dtype, *count, folder));
  view.bytes = std::as_bytes(std::span(bytes));
  view.shape = ModelShape(spec, tensor, view.shape);
  return view;
}

StatusOr<Request> RequestOf(const inference::ModelWarmup& sample, const Model& model, const fs::path& folder) {
  const ModelSpec& spec = model.spec();
  Request request;
  auto bytes = std::make_shared<std::vector<std::string>>(spec.inputs.size());
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const auto input = sample.inputs().find(spec.inputs[i].name);
    if (input == sample.inputs().end() && spec.inputs[i].default_value != nullptr) {
      request.inputs.push_back(DefaultView(spec, spec.inputs[i], 1));
      continue;
    }
    if (input == sample.inputs().end()) return InvalidArgument("has no input '", spec.inputs[i].name, "'");
    auto view = ViewOf(input->second, spec.inputs[i], spec, folder, (*bytes)[i]);
    if (!view.ok()) return Annotate(view.status(), Concat("input '", spec.inputs[i].name, "'"));
    request.inputs.push_back(*std::move(view));
  }
  for (const auto& [name, input] : sample.inputs()) {
    if (std::ranges::find(spec.inputs, name, &TensorSpec::name) != spec.inputs.end()) continue;
    return InvalidArgument("has the input ", QuotedName(name), ", which the model has not");
  }
  request.owner = std::move(bytes);
  SWIZZLE_RETURN_IF_ERROR(PrepareRequest(model, request));
  return request;
}

std::string NameOf(std::string_view sample) { return Concat("config.pbtxt: sample '", sample, "' of 'model_warmup'"); }

}  // namespace

regions::SampleShapes WarmUp::ShapesOf(const inference::ModelConfig& config, const ModelSpec& spec) {
  regions::SampleShapes samples;
  for (const inference::ModelWarmup& given : config.model_warmup()) {
    auto& sample = samples.emplace_back();
    for (const TensorSpec& tensor : spec.inputs) {
      const auto input = given.inputs().find(tensor.name);
      if (input == given.inputs().end()) continue;
      const Shape shape = WireShapeOf(input->second, spec);
      if (ShapeFits(spec, tensor, shape)) sample.emplace(tensor.name, ModelShape(spec, tensor, shape));
    }
  }
  return samples;
}

StatusOr<WarmUp> WarmUp::Of(const inference::ModelConfig& config, const Model& model, const fs::path& folder) {
  const ModelSpec& spec = model.spec();
  WarmUp warm_up;
  for (const inference::ModelWarmup& given : config.model_warmup()) {
    Sample& sample = warm_up.samples_.emplace_back();
    sample.name = given.name();
    StatusOr<Request> request = RequestOf(given, model, folder);
    if (!request.ok()) return Annotate(request.status(), NameOf(sample.name));
    sample.request = *std::move(request);
    sample.batches = std::max<int64_t>(given.count(), 1);
    // What there is room for: the model's largest batch may be smaller than the file's.
    int64_t most = std::max<int64_t>(spec.max_batch_size, 1);
    if (spec.max_batch_tokens > 0 && sample.request.tokens > 0) {
      most = std::min(most, std::max<int64_t>(spec.max_batch_tokens / sample.request.tokens, 1));
    }
    sample.together = std::clamp<int64_t>(given.batch_size(), 1, most);
  }
  return warm_up;
}

Status WarmUp::Run(Session& session) const {
  UnreadAnswers unread;
  for (const Sample& sample : samples_) {
    for (int64_t i = 0; i < sample.batches; ++i) {
      const auto count = static_cast<size_t>(sample.together);
      std::vector<std::vector<std::string>> outputs(count);
      std::vector<std::vector<Shape>> shapes(count);
      std::vector<BatchItem> items;
      for (size_t j = 0; j < count; ++j) {
        items.push_back({sample.request.inputs, 1, &outputs[j], &shapes[j], &unread});
      }
      BatchTimes times;
      SWIZZLE_RETURN_IF_ERROR(Annotate(session.Run(items, times), NameOf(sample.name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace swizzle
