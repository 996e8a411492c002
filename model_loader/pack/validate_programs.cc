#include "model_loader/pack/validate_programs.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "model_loader/calibration/row_batches.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "model_loader/safetensors/checkpoint.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::pack {
namespace {

using interpreter::Array;

constexpr uint32_t kSeed = 1;
constexpr int64_t kRowsAtOnce = 8;

using ProgramPointer = std::shared_ptr<const interpreter::Program>;

// What came of the model in `file`.
template <typename T>
StatusOr<T> Of(const std::filesystem::path& file, StatusOr<T> result) {
  if (!result.ok()) return Annotate(result.status(), file.string());
  return result;
}

// Of a model that one plan takes whole the same graph, read again.
StatusOr<ProgramPointer> ProgramOf(const std::filesystem::path& file, RunnableModel model) {
  if (auto* const unplanned = std::get_if<FallbackModel>(&model)) return std::move(unplanned->program);
  model = {};  // its weights
  if (IsCheckpoint(file)) return interpreter::ReadProgram(file);
  SWIZZLE_ASSIGN_OR_RETURN(const OnnxModel onnx, ReadOnnxModel(file));
  return Of(file, interpreter::ReadProgram(std::span<const std::byte>(onnx.bytes), onnx.options));
}

// Two programs of the same inputs and outputs, ready to run.
struct Pair {
  ProgramPointer program, other;  // the reference's, the candidate's
  std::unique_ptr<interpreter::ProgramRunner> reference, candidate;
  std::vector<size_t> input_places;   // of the candidate's inputs among the reference's
  std::vector<size_t> output_places;  // of the reference's outputs among the candidate's
};

StatusOr<std::vector<size_t>> Match(const std::vector<interpreter::Port>& wanted,
                                    const std::vector<interpreter::Port>& ports) {
  std::vector<size_t> places;
  for (const interpreter::Port& port : wanted) {
    const auto same = std::ranges::find(ports, port.name, &interpreter::Port::name);
    if (same == ports.end()) return InvalidArgument("only one of the models has '", port.name, "'");
    places.push_back(static_cast<size_t>(same - ports.begin()));
  }
  if (wanted.size() != ports.size()) return InvalidArgument("the models have other numbers of inputs or outputs");
  return places;
}

// UNIMPLEMENTED where it is to run on a device and does not.
StatusOr<std::unique_ptr<interpreter::ProgramRunner>> NewRunner(ProgramPointer program,
                                                                const regions::RegionBackends& backends,
                                                                bool is_for_device) {
  const PlanOptions options{.tuning_budget = absl::ZeroDuration()};
  const regions::RegionalProgram regional = regions::PlanRegions(std::move(program), backends, options);
  if (is_for_device && regional.on_device == nullptr) {
    return Unimplemented("it does not run on the device: ",
                         regional.not_on_device.empty() ? "that has no functions" : regional.not_on_device);
  }
  return regional.NewRunner(backends.host, /*threads=*/0);
}

StatusOr<Pair> MakePair(const ValidateCommand& command, const Devices& devices, RunnableModel reference,
                        RunnableModel candidate) {
  Pair pair;
  SWIZZLE_ASSIGN_OR_RETURN(pair.program, ProgramOf(command.reference, std::move(reference)));
  SWIZZLE_ASSIGN_OR_RETURN(pair.other, ProgramOf(command.candidate, std::move(candidate)));
  SWIZZLE_ASSIGN_OR_RETURN(pair.input_places, Match(pair.other->inputs(), pair.program->inputs()));
  SWIZZLE_ASSIGN_OR_RETURN(pair.output_places, Match(pair.program->outputs(), pair.other->outputs()));
  SWIZZLE_ASSIGN_OR_RETURN(pair.reference, Of(command.reference, NewRunner(pair.program, devices.cpu(), false)));
  const regions::RegionBackends backends{devices.cpu(), devices.main_gpu(), devices.functions()};
  SWIZZLE_ASSIGN_OR_RETURN(pair.candidate,
                           Of(command.candidate, NewRunner(pair.other, backends, devices.main_gpu() != nullptr)));
  return pair;
}

// One batch of real numbers, or bytes, of the sizes that the model declares.
StatusOr<NpyArray> DrawInput(const interpreter::Port& port, std::mt19937& random) {
  const DType dtype = port.dtype.value_or(DType::kFloat32);
  Shape shape = port.shape.value_or(Shape{-1});
  if (!shape.empty() && shape[0] < 0) shape[0] = 1;
  if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; })) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(*port.shape),
                           ", whose free sizes nothing says: give --inputs=FILE.npz");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
  if (elements > interpreter::Limits().max_array_bytes / static_cast<int64_t>(sizeof(float))) {
    return MakeError(StatusCode::kResourceExhausted, "input '", port.name, "' is ", ShapeText(shape),
                     ", too large to be drawn");
  }
  NpyArray array{dtype, shape, std::vector<std::byte>(static_cast<size_t>(elements) * ElementBytes(dtype))};
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> byte(0, 255);
  if (dtype == DType::kFloat32) {
    for (size_t at = 0; at < array.bytes.size(); at += sizeof(float)) {
      const float value = normal(random);
      std::memcpy(&array.bytes[at], &value, sizeof(value));
    }
  } else if (dtype == DType::kUint8) {
    std::ranges::generate(array.bytes, [&] { return static_cast<std::byte>(byte(random)); });
  } else {
    return InvalidArgument("input '", port.name, "' is ", DTypeName(dtype),
                           ", of which nothing says what it may hold: give --inputs=FILE.npz");
  }
  return array;
}

StatusOr<NpyArrays> DrawInputs(const interpreter::Program& program, std::mt19937& random) {
  NpyArrays arrays;
  for (const interpreter::Port& port : program.inputs()) {
    SWIZZLE_ASSIGN_OR_RETURN(arrays[port.name], DrawInput(port, random));
  }
  return arrays;
}

StatusOr<std::vector<double>> NumbersOf(const std::string& name, const Array& array) {
  if (array.dtype == DType::kString || array.IsSequence()) {
    return Unimplemented("output '", name, "' is no array of numbers, which nothing compares");
  }
  std::vector<double> numbers;
  numbers.reserve(static_cast<size_t>(array.elements()));
  VisitElementType(array.dtype, [&]<typename T>(T) {
    for (const T element : array.As<T>()) numbers.push_back(static_cast<double>(Widened(element)));
  });
  return numbers;
}

// Compares batch after batch.
class Comparer {
 public:
  Comparer(const ValidateCommand& command, Pair& pair) : command_(command), pair_(pair) {
    for (const interpreter::Port& port : pair.program->outputs()) result_.differences.push_back({.output = port.name});
  }

  // rows: of all batches, which labels are for.
  Status See(const std::vector<TensorView>& inputs, int64_t rows) {
    std::vector<TensorView> candidate_inputs;
    for (const size_t place : pair_.input_places) candidate_inputs.push_back(inputs[place]);
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> expected, Of(command_.reference, pair_.reference->Run(inputs)));
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> actual,
                             Of(command_.candidate, pair_.candidate->Run(candidate_inputs)));
    result_.samples += rows == 0 ? 1 : inputs.front().shape[0];
    for (size_t i = 0; i < expected.size(); ++i) {
      const Array& other = actual[pair_.output_places[i]];
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
  const auto batches_of = [&](const interpreter::Program& program) {
    return Of(command.inputs, RowBatches::Of(program, arrays, kRowsAtOnce));
  };
  SWIZZLE_ASSIGN_OR_RETURN(RowBatches of_reference, batches_of(*pair.program));
  SWIZZLE_ASSIGN_OR_RETURN(const RowBatches of_candidate, batches_of(*pair.other));
  if (of_candidate.size() <= of_reference.size()) return of_reference;
  // In the reference's order of inputs.
  const int64_t rows = of_candidate.rows(), most = (rows + of_candidate.size() - 1) / of_candidate.size();
  return RowBatches::Of(*pair.program, arrays, most);
}

}  // namespace

StatusOr<Comparison> ComparePrograms(const ValidateCommand& command, const Devices& devices, RunnableModel reference,
                                     RunnableModel candidate) {
  SWIZZLE_ASSIGN_OR_RETURN(Pair pair, MakePair(command, devices, std::move(reference), std::move(candidate)));
  Comparer comparer(command, pair);
  if (command.inputs.empty()) {
    std::mt19937 random(kSeed);
    for (int i = 0; i < command.samples; ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, DrawInputs(*pair.program, random));
      SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> inputs, InputsAmong(*pair.program, arrays));
      SWIZZLE_RETURN_IF_ERROR(comparer.See(inputs, /*rows=*/0));
    }
    return std::move(comparer).result();
  }
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, ReadNpz(command.inputs));
  SWIZZLE_ASSIGN_OR_RETURN(const RowBatches batches, BatchesFor(command, pair, arrays));
  for (int64_t i = 0; i < batches.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(comparer.See(batches.Batch(i), batches.rows()));
  }
  return std::move(comparer).result();
}

}  // namespace swizzle::pack
