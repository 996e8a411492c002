#include <algorithm>
#include <ostream>

#include "kernels/devices.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/files/npy.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/fallback_report.h"
#include "model_loader/pack/input_arrays.h"
#include "model_loader/regions/plan_regions.h"

namespace swizzle::pack {
namespace {

StatusOr<NpyArrays> ReadInputs(const std::vector<std::string>& arguments) {
  NpyArrays arrays;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument("--input '", argument, "' is not NAME=FILE.npy");
    }
    SWIZZLE_ASSIGN_OR_RETURN(NpyArray array, ReadNpy(argument.substr(equals + 1)));
    const std::string name = argument.substr(0, equals);
    if (!arrays.emplace(name, std::move(array)).second) return InvalidArgument("input '", name, "' is given twice");
  }
  return arrays;
}

// A file name for an output, which may be called anything.
std::string FileName(std::string output) {
  std::replace(output.begin(), output.end(), '/', '_');
  return output + ".npy";
}

Status WriteOutput(const std::string& name, const TensorView& view, const std::filesystem::path& folder,
                   std::ostream& out) {
  const std::filesystem::path file = folder / FileName(name);
  SWIZZLE_RETURN_IF_ERROR(WriteNpy(file, view));
  out << name << ": " << DTypeName(view.dtype) << " " << ShapeText(view.shape) << " in " << file.string() << "\n";
  return {};
}

Status WriteOutputs(const NetworkRunner& runner, const std::vector<std::vector<float>>& outputs,
                    const std::filesystem::path& folder, std::ostream& out) {
  SWIZZLE_RETURN_IF_ERROR(MakeFolder(folder));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NetworkPort& port = runner.outputs()[i];
    const TensorView view{DType::kFloat32, ShapeAt(runner.network(), port, runner.batch(), runner.length()),
                          std::as_bytes(std::span(outputs[i]))};
    SWIZZLE_RETURN_IF_ERROR(WriteOutput(port.name, view, folder, out));
  }
  return {};
}

StatusOr<Outcome> RunPlanned(const RunCommand& command, LoadedModel model, const NpyArrays& arrays,
                             Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(arrays, model.network));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t length, LengthOf(arrays, model.network));
  std::vector<std::vector<float>> inputs;
  for (const NetworkPort& port : model.network.inputs) {
    const Shape shape = ShapeAt(model.network, port, batch, length);
    SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), Floats(arrays.at(port.name), port, shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  SWIZZLE_ASSIGN_OR_RETURN(NetworkRunner runner, NetworkRunner::Make(std::move(model.network), devices.main(), batch,
                                                                     command.threads, length));
  for (size_t i = 0; i < inputs.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(CheckRange(runner, static_cast<int>(i), inputs[i]));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto outputs, runner.Run(inputs));
  SWIZZLE_RETURN_IF_ERROR(WriteOutputs(runner, outputs, command.output_folder, terminal.out));
  return Outcome::kOk;
}

StatusOr<Outcome> RunFallback(const RunCommand& command, const FallbackModel& model, const NpyArrays& arrays,
                              Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  const PlanOptions options{.threads = command.threads, .tuning_budget = absl::ZeroDuration()};
  const regions::RegionalProgram regional =
      regions::PlanRegions(model.program, {devices.cpu(), devices.main_gpu(), devices.functions()}, options);
  terminal.err << FallbackText(model, regional);
  std::vector<TensorView> inputs;
  for (const interpreter::Port& port : model.program->inputs()) {
    const NpyArray& array = arrays.at(port.name);
    inputs.push_back({array.dtype, array.shape, array.bytes});
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto runner, regional.NewRunner(devices.cpu(), command.threads));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<interpreter::Array> outputs, runner->Run(inputs));
  SWIZZLE_RETURN_IF_ERROR(MakeFolder(command.output_folder));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorView view{outputs[i].dtype, outputs[i].shape, outputs[i].AsBytes()};
    const std::string& name = model.program->outputs()[i].name;
    SWIZZLE_RETURN_IF_ERROR(WriteOutput(name, view, command.output_folder, terminal.out));
  }
  return Outcome::kOk;
}

}  // namespace

StatusOr<Outcome> Execute(const RunCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel model, LoadRunnableModel(command.model));
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, ReadInputs(command.inputs));
  if (const auto* unplanned = std::get_if<FallbackModel>(&model)) {
    SWIZZLE_RETURN_IF_ERROR(CheckNames(arrays, unplanned->program->inputs()));
    return RunFallback(command, *unplanned, arrays, terminal);
  }
  auto& planned = std::get<LoadedModel>(model);
  SWIZZLE_RETURN_IF_ERROR(CheckNames(arrays, planned.network.inputs));
  return RunPlanned(command, std::move(planned), arrays, terminal);
}

}  // namespace swizzle::pack
