#include "model_loader/pack/model_pair.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "model_loader/calibration/row_batches.h"
#include "model_loader/compiled/compile.h"
#include "model_loader/files/npz.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::pack {
namespace {

constexpr uint32_t kSeed = 1;
constexpr int64_t kRowsAtOnce = 8;
constexpr int64_t kDrawnTokens = 24;  // of a sequence, where the model has positions for so many

// What came of the model in `file`.
template <typename T>
StatusOr<T> Of(const std::filesystem::path& file, StatusOr<T> result) {
  if (!result.ok()) return Annotate(result.status(), file.string());
  return result;
}

// Two models of the same inputs and outputs, as they were read, and then ready to run.
struct Pair {
  RunnableModel reference, candidate;
  ModelInterface interface, other;      // the reference's, the candidate's
  std::vector<size_t> input_places;     // of the candidate's inputs among the reference's
  std::vector<size_t> output_places;    // of the reference's outputs among the candidate's
  std::vector<CompiledModel> compiled;  // outlive their runners
  std::unique_ptr<ModelRunner> reference_runner, candidate_runner;
};

// Sizes that both declare are the same; -1 says nothing.
bool ShapesFit(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  const auto fit = [](int64_t one, int64_t other) { return one == -1 || other == -1 || one == other; };
  return !a || !b || std::ranges::equal(*a, *b, fit);
}

StatusOr<std::vector<size_t>> Match(const std::vector<interpreter::Port>& wanted,
                                    const std::vector<interpreter::Port>& ports) {
  std::vector<size_t> places;
  for (const interpreter::Port& port : wanted) {
    const auto same = std::ranges::find(ports, port.name, &interpreter::Port::name);
    if (same == ports.end()) return InvalidArgument("only one of the models has '", port.name, "'");
    if (!ShapesFit(port.shape, same->shape)) {
      return InvalidArgument("'", port.name, "' is ", ShapeText(*port.shape), " in one model and ",
                             ShapeText(*same->shape), " in the other");
    }
    places.push_back(static_cast<size_t>(same - ports.begin()));
  }
  if (wanted.size() != ports.size()) return InvalidArgument("the models have other numbers of inputs or outputs");
  return places;
}

StatusOr<Pair> ReadPair(const ValidateCommand& command) {
  Pair pair;
  SWIZZLE_ASSIGN_OR_RETURN(pair.reference, LoadRunnableModel(command.reference));
  SWIZZLE_ASSIGN_OR_RETURN(pair.candidate, LoadRunnableModel(command.candidate));
  pair.interface = InterfaceOf(pair.reference);
  pair.other = InterfaceOf(pair.candidate);
  SWIZZLE_ASSIGN_OR_RETURN(pair.input_places, Match(pair.other.inputs, pair.interface.inputs));
  SWIZZLE_ASSIGN_OR_RETURN(pair.output_places, Match(pair.interface.outputs, pair.other.outputs));
  return pair;
}

// UNIMPLEMENTED where it is to run on a device and does not.
StatusOr<std::unique_ptr<ModelRunner>> NewRunner(const Devices& devices, RunnableModel model,
                                                 const PlanOptions& options, std::vector<CompiledModel>& kept) {
  SWIZZLE_ASSIGN_OR_RETURN(CompiledModel compiled, CompileFor(devices, std::move(model), options));
  if (devices.main_gpu() != nullptr && !compiled.on_device()) {
    const std::string& why = compiled.regional()->not_on_device;
    return Unimplemented("it does not run on the device: ", why.empty() ? "that has no functions" : why);
  }
  return kept.emplace_back(std::move(compiled)).NewRunner({});
}

// For runs of so many rows of inputs as long as these: a plan for no more is soon made. The models are gone then.
Status MakeReady(const ValidateCommand& command, const Devices& cpu, const Devices& devices,
                 std::span<const TensorView> inputs, int64_t rows, Pair& pair) {
  const PlanOptions options = OptionsForRuns(pair.interface, inputs, rows, 0);
  SWIZZLE_ASSIGN_OR_RETURN(
      pair.reference_runner,
      Of(command.reference, NewRunner(cpu, std::exchange(pair.reference, {}), options, pair.compiled)));
  const PlanOptions others = OptionsForRuns(pair.other, inputs, rows, 0);
  SWIZZLE_ASSIGN_OR_RETURN(
      pair.candidate_runner,
      Of(command.candidate, NewRunner(devices, std::exchange(pair.candidate, {}), others, pair.compiled)));
  return absl::OkStatus();
}

// What an input holds that is drawn: real numbers, bytes, ids from their table, and masks of ones.
StatusOr<int64_t> LimitOf(const ModelInterface& interface, size_t i) {
  const DType dtype = interface.inputs[i].dtype.value_or(DType::kFloat32);
  if (dtype == DType::kFloat32) return 0;
  if (dtype == DType::kUint8) return 256;
  if (!interface.limits.empty()) return std::max<int64_t>(interface.limits[i], 1);
  return InvalidArgument("input '", interface.inputs[i].name, "' is ", DTypeName(dtype),
                         ", of which nothing says what it may hold: give --inputs=FILE.npz");
}

// One row, or as many as the model runs.
StatusOr<NpyArray> DrawInput(const ModelInterface& interface, size_t i, std::mt19937& random) {
  const interpreter::Port& port = interface.inputs[i];
  Shape shape = port.shape.value_or(Shape{-1});
  if (!shape.empty() && shape[0] < 0) shape[0] = 1;
  if (interface.has_sequences) {
    const int64_t tokens = interface.longest == 0 ? kDrawnTokens : std::min(kDrawnTokens, interface.longest);
    std::ranges::replace(shape, int64_t{-1}, tokens);
  }
  if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; })) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(*port.shape),
                           ", whose free sizes nothing says: give --inputs=FILE.npz");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
  if (elements > interpreter::Limits().max_array_bytes / static_cast<int64_t>(sizeof(float))) {
    return MakeError(StatusCode::kResourceExhausted, "input '", port.name, "' is ", ShapeText(shape),
                     ", too large to be drawn");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t limit, LimitOf(interface, i));
  const bool is_mask = static_cast<int>(i) == interface.mask;
  const DType dtype = port.dtype.value_or(DType::kFloat32);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int64_t> whole(0, std::max<int64_t>(limit, 1) - 1);
  NpyArray array{dtype, shape, std::vector<std::byte>(static_cast<size_t>(elements) * ElementBytes(dtype))};
  VisitElementType(dtype, [&]<typename T>(T) {
    for (size_t at = 0; at < array.bytes.size(); at += sizeof(T)) {
      const double drawn = limit > 0 ? static_cast<double>(whole(random)) : normal(random);
      const T value = static_cast<T>(is_mask ? 1.0 : drawn);
      std::memcpy(&array.bytes[at], &value, sizeof(T));
    }
  });
  return array;
}

StatusOr<NpyArrays> DrawInputs(const ModelInterface& interface, std::mt19937& random) {
  NpyArrays arrays;
  for (size_t i = 0; i < interface.inputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(arrays[interface.inputs[i].name], DrawInput(interface, i, random));
  }
  return arrays;
}

StatusOr<std::vector<double>> NumbersOf(const std::string& name, const TensorView& output) {
  if (ElementBytes(output.dtype) == 0) {
    return Unimplemented("output '", name, "' is no array of numbers, which nothing compares");
  }
  std::vector<double> numbers;
  numbers.reserve(output.bytes.size() / ElementBytes(output.dtype));
  VisitElementType(output.dtype, [&]<typename T>(T element) {
    for (size_t at = 0; at < output.bytes.size(); at += sizeof(T)) {
      std::memcpy(&element, &output.bytes[at], sizeof(T));
      numbers.push_back(static_cast<double>(Widened(element)));
    }
  });
  return numbers;
}

// Compares batch after batch.
class Comparer {
 public:
  Comparer(const ValidateCommand& command, Pair& pair) : command_(command), pair_(pair) {
    for (const interpreter::Port& port : pair.interface.outputs) result_.differences.push_back({.output = port.name});
  }

  // rows: of all batches, which labels are for.
  Status See(const std::vector<TensorView>& inputs, int64_t rows) {
    std::vector<TensorView> candidate_inputs;
    for (const size_t place : pair_.input_places) candidate_inputs.push_back(inputs[place]);
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> expected,
                             Of(command_.reference, pair_.reference_runner->RunViews(inputs)));
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> actual,
                             Of(command_.candidate, pair_.candidate_runner->RunViews(candidate_inputs)));
    result_.samples += rows == 0 ? 1 : inputs.front().shape[0];
    for (size_t i = 0; i < expected.size(); ++i) {
      const TensorView& other = actual[pair_.output_places[i]];
      const std::string& name = result_.differences[i].output;
      if (expected[i].shape != other.shape || expected[i].dtype != other.dtype) {
        return InvalidArgument("output '", name, "' is ", DTypeName(expected[i].dtype), " ",
                               ShapeText(expected[i].shape), " of the reference and ", DTypeName(other.dtype), " ",
                               ShapeText(other.shape), " of the candidate");
      }
      SWIZZLE_ASSIGN_OR_RETURN(const std::vector<double> reference, NumbersOf(name, expected[i]));
      SWIZZLE_ASSIGN_OR_RETURN(const std::vector<double> candidate, NumbersOf(name, other));
      result_.differences[i].See(reference, candidate);
      if (command_.labels.empty()) continue;
      SWIZZLE_RETURN_IF_ERROR(CheckScores(expected[i].shape, inputs, rows));
      SWIZZLE_RETURN_IF_ERROR(CountLabels(expected[i].shape, rows, reference, candidate));
    }
    return {};
  }

  Comparison result() && { return std::move(result_); }

 private:
  // That an output has a row of scores for each row of the batch.
  Status CheckScores(const Shape& shape, const std::vector<TensorView>& inputs, int64_t rows) const {
    const bool is_alone = result_.differences.size() == 1 && rows > 0 && shape.size() == 2;
    if (is_alone && shape[0] == inputs.front().shape[0] && shape[1] > 0) return {};
    return InvalidArgument("--labels asks for a model whose one output is [rows, classes], a score for each class; ",
                           result_.differences.size() == 1 ? Concat("this one's is ", ShapeText(shape),
                                                                    " of inputs of ", ShapeText(inputs.front().shape))
                                                           : Concat("this one has ", result_.differences.size()));
  }

  Status CountLabels(const Shape& shape, int64_t rows, std::span<const double> reference,
                     std::span<const double> candidate) {
    if (!result_.top1) {
      SWIZZLE_ASSIGN_OR_RETURN(labels_, ReadLabels(command_.labels, rows, shape[1]));
      result_.top1 = Top1{.rows = rows};
    }
    const auto of_batch = std::span(labels_).subspan(labelled_, static_cast<size_t>(shape[0]));
    labelled_ += of_batch.size();
    result_.top1->reference += CountRight(reference, of_batch);
    result_.top1->candidate += CountRight(candidate, of_batch);
    return {};
  }

  const ValidateCommand& command_;
  Pair& pair_;
  std::vector<int64_t> labels_;
  size_t labelled_ = 0;  // rows that were compared
  Comparison result_;
};

// As both models take them: a fixed batch wins over a free one.
StatusOr<RowBatches> BatchesFor(const ValidateCommand& command, const Pair& pair, const NpyArrays& arrays) {
  const auto batches_of = [&](const ModelInterface& interface, int64_t most) {
    return Of(command.inputs, RowBatches::Of(interface, arrays, most));
  };
  SWIZZLE_ASSIGN_OR_RETURN(RowBatches of_reference, batches_of(pair.interface, kRowsAtOnce));
  SWIZZLE_ASSIGN_OR_RETURN(const RowBatches of_candidate, batches_of(pair.other, kRowsAtOnce));
  if (of_candidate.size() <= of_reference.size()) return of_reference;
  // In the reference's order of inputs.
  const int64_t rows = of_candidate.rows(), most = (rows + of_candidate.size() - 1) / of_candidate.size();
  return batches_of(pair.interface, most);
}

}  // namespace

StatusOr<Comparison> CompareModels(const ValidateCommand& command, const Devices& devices) {
  SWIZZLE_ASSIGN_OR_RETURN(const Devices cpu, Devices::Open("cpu"));
  SWIZZLE_ASSIGN_OR_RETURN(Pair pair, ReadPair(command));
  Comparer comparer(command, pair);
  if (command.inputs.empty()) {
    std::mt19937 random(kSeed);
    for (int i = 0; i < command.samples; ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, DrawInputs(pair.interface, random));
      SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> inputs, InputsAmong(pair.interface.inputs, arrays));
      if (i == 0) SWIZZLE_RETURN_IF_ERROR(MakeReady(command, cpu, devices, inputs, 1, pair));
      SWIZZLE_RETURN_IF_ERROR(comparer.See(inputs, /*rows=*/0));
    }
    return std::move(comparer).result();
  }
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, ReadNpz(command.inputs));
  SWIZZLE_ASSIGN_OR_RETURN(const RowBatches batches, BatchesFor(command, pair, arrays));
  const std::vector<TensorView> first = batches.Batch(0);
  const int64_t rows = first[0].shape.empty() ? 1 : first[0].shape[0];
  SWIZZLE_RETURN_IF_ERROR(MakeReady(command, cpu, devices, first, rows, pair));
  for (int64_t i = 0; i < batches.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(comparer.See(batches.Batch(i), batches.rows()));
  }
  return std::move(comparer).result();
}

}  // namespace swizzle::pack
