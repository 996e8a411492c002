#include <algorithm>
#include <ostream>

#include "kernels/devices.h"
#include "model_loader/calibration/row_batches.h"
#include "model_loader/compiled/compile.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/files/npy.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/program_report.h"

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

}  // namespace

StatusOr<Outcome> Execute(const RunCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel model, LoadRunnableModel(command.model));
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArrays arrays, ReadInputs(command.inputs));
  const ModelInterface interface = InterfaceOf(model);
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> inputs, InputsAmong(interface.inputs, arrays));
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(command.device));
  const int64_t rows = inputs[0].shape.empty() ? 1 : inputs[0].shape[0];
  const PlanOptions options = OptionsForRuns(interface, inputs, rows, command.threads);
  SWIZZLE_ASSIGN_OR_RETURN(const CompiledModel compiled, CompileFor(devices, std::move(model), options));
  if (compiled.regional() != nullptr) {
    terminal.err << ProgramText({.regional = *compiled.regional(), .reason = compiled.reason()});
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> runner, compiled.NewRunner({.threads = command.threads}));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> outputs, runner->RunViews(inputs));
  SWIZZLE_RETURN_IF_ERROR(MakeFolder(command.output_folder));
  for (size_t i = 0; i < outputs.size(); ++i) {
    SWIZZLE_RETURN_IF_ERROR(WriteOutput(interface.outputs[i].name, outputs[i], command.output_folder, terminal.out));
  }
  return Outcome::kOk;
}

}  // namespace swizzle::pack
