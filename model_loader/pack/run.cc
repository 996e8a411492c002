#include <algorithm>
#include <cstring>
#include <map>
#include <ostream>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/loader.h"
#include "model_loader/npy.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/fallback_report.h"
#include "model_loader/pack/network_runner.h"

namespace swizzle::pack {
namespace {

using Arrays = std::map<std::string, NpyArray>;  // by input name

StatusOr<Arrays> ReadInputs(const std::vector<std::string>& arguments) {
  Arrays arrays;
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

template <typename Port>
std::string NamesText(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) text += Concat(text.empty() ? "'" : ", '", port.name, "'");
  return text;
}

template <typename Port>
Status CheckNames(const Arrays& arrays, const std::vector<Port>& ports) {
  for (const auto& [name, array] : arrays) {
    const bool known = std::any_of(ports.begin(), ports.end(), [&](const Port& p) { return p.name == name; });
    if (!known) return InvalidArgument("the model has no input '", name, "'; it has ", NamesText(ports));
  }
  for (const Port& port : ports) {
    if (!arrays.contains(port.name)) return InvalidArgument("input '", port.name, "' is missing");
  }
  return {};
}

// The number of rows, from the first dimension of the first input. All others are compared with it later.
StatusOr<int64_t> BatchOf(const Arrays& arrays, const Network& network) {
  if (network.batch_size > 0) return network.batch_size;
  const Shape& shape = arrays.at(network.inputs[0].name).shape;
  if (shape.empty() || shape[0] < 1) {
    return InvalidArgument("input '", network.inputs[0].name, "' is ", ShapeText(shape),
                           "; its first dimension, the batch, must be at least 1");
  }
  return shape[0];
}

StatusOr<std::vector<float>> Floats(const NpyArray& array, const NetworkPort& port, const Shape& shape) {
  if (array.dtype != DType::kFloat32) {
    return InvalidArgument("input '", port.name, "' is ", DTypeName(array.dtype), "; save array.astype('<f4')");
  }
  if (array.shape != shape) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(array.shape), "; it must be ", ShapeText(shape));
  }
  std::vector<float> floats(array.bytes.size() / sizeof(float));
  std::memcpy(floats.data(), array.bytes.data(), array.bytes.size());
  return floats;
}

// A file name for an output, which may be called anything.
std::string FileName(std::string output) {
  std::replace(output.begin(), output.end(), '/', '_');
  return output + ".npy";
}

Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return InvalidArgument("cannot make the folder ", folder.string(), ": ", error.message());
  return {};
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
    const TensorView view{DType::kFloat32, ShapeWithBatch(runner.network(), port, runner.batch()),
                          std::as_bytes(std::span(outputs[i]))};
    SWIZZLE_RETURN_IF_ERROR(WriteOutput(port.name, view, folder, out));
  }
  return {};
}

StatusOr<Outcome> RunPlanned(const RunCommand& command, LoadedModel model, const Arrays& arrays, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t batch, BatchOf(arrays, model.network));
  std::vector<std::vector<float>> inputs;
  for (const NetworkPort& port : model.network.inputs) {
    const Shape shape = ShapeWithBatch(model.network, port, batch);
    SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), Floats(arrays.at(port.name), port, shape));
  }
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(NetworkRunner runner,
                           NetworkRunner::Make(std::move(model.network), *backend, batch, command.threads));
  SWIZZLE_ASSIGN_OR_RETURN(const auto outputs, runner.Run(inputs));
  SWIZZLE_RETURN_IF_ERROR(WriteOutputs(runner, outputs, command.output_folder, terminal.out));
  return Outcome::kOk;
}

StatusOr<Outcome> RunFallback(const RunCommand& command, const FallbackModel& model, const Arrays& arrays,
                              Terminal& terminal) {
  terminal.err << FallbackText(model);
  std::vector<TensorView> inputs;
  for (const fallback::Port& port : model.program->inputs()) {
    const NpyArray& array = arrays.at(port.name);
    inputs.push_back({array.dtype, array.shape, array.bytes});
  }
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend->NewStream(command.threads));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<fallback::Array> outputs, model.program->Run(inputs, *stream));
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
  SWIZZLE_ASSIGN_OR_RETURN(const Arrays arrays, ReadInputs(command.inputs));
  if (const auto* unplanned = std::get_if<FallbackModel>(&model)) {
    SWIZZLE_RETURN_IF_ERROR(CheckNames(arrays, unplanned->program->inputs()));
    return RunFallback(command, *unplanned, arrays, terminal);
  }
  auto& planned = std::get<LoadedModel>(model);
  SWIZZLE_RETURN_IF_ERROR(CheckNames(arrays, planned.network.inputs));
  return RunPlanned(command, std::move(planned), arrays, terminal);
}

}  // namespace swizzle::pack
