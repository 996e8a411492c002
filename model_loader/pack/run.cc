#include <algorithm>
#include <cstring>
#include <map>
#include <ostream>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/devices.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/files/npy.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/fallback_report.h"
#include "model_loader/pack/network_runner.h"
#include "model_loader/plan/run/token_packing.h"
#include "model_loader/regions/plan_regions.h"

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
  for (const auto& array : arrays) {
    const std::string& name = array.first;
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

// The length of the sequences, from the second dimension of the first input; 0 where there are none, or it is fixed.
StatusOr<int64_t> LengthOf(const Arrays& arrays, const Network& network) {
  if (!network.sequences || network.sequences->length > 0) return 0;
  const Shape& shape = arrays.at(network.inputs[0].name).shape;
  const int64_t positions = network.LookupLimit(-1);
  if (shape.size() == 2 && shape[1] >= 1 && (positions == 0 || shape[1] <= positions)) return shape[1];
  return InvalidArgument("input '", network.inputs[0].name, "' is ", ShapeText(shape), "; it must be [batch, length]",
                         positions == 0 ? "" : Concat(", of at most ", positions, " tokens"));
}

// The elements of an array that has the port's type and this shape.
StatusOr<std::vector<float>> Floats(const NpyArray& array, const NetworkPort& port, const Shape& shape) {
  if (array.dtype != port.dtype) {
    const char* type = port.dtype == DType::kFloat32 ? "<f4"
                       : port.dtype == DType::kUint8 ? "|u1"
                       : port.dtype == DType::kInt64 ? "<i8"
                                                     : "<i4";
    return InvalidArgument("input '", port.name, "' is ", DTypeName(array.dtype), "; save array.astype('", type, "')");
  }
  if (array.shape != shape) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(array.shape), "; it must be ", ShapeText(shape));
  }
  std::vector<float> floats(array.bytes.size() / ElementBytes(array.dtype));
  const TensorView view{array.dtype, array.shape, array.bytes};
  if (array.dtype == DType::kFloat32) {
    std::memcpy(floats.data(), array.bytes.data(), array.bytes.size());
  } else if (array.dtype == DType::kUint8) {
    std::ranges::transform(array.bytes, floats.begin(), [](std::byte x) { return static_cast<float>(x); });
  } else {
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(WholeAt(view, static_cast<int64_t>(i)));
  }
  return floats;
}

// That ids are in their tables, and masks 0 or 1.
Status CheckRange(const NetworkRunner& runner, int i, const std::vector<float>& elements) {
  const int64_t limit = runner.IsMask(i) ? 2 : runner.IdLimit(i);
  const auto outside = [&](float x) { return x < 0 || x >= static_cast<float>(limit); };
  const auto found = std::find_if(elements.begin(), elements.end(), outside);
  if (limit == 0 || found == elements.end()) return {};
  return InvalidArgument("input '", runner.inputs()[i].name, "' holds ", *found, " at element ",
                         found - elements.begin(), "; it must be from 0 to ", limit - 1);
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

StatusOr<Outcome> RunPlanned(const RunCommand& command, LoadedModel model, const Arrays& arrays, Terminal& terminal) {
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

StatusOr<Outcome> RunFallback(const RunCommand& command, const FallbackModel& model, const Arrays& arrays,
                              Terminal& terminal) {
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const PlanOptions options{.threads = command.threads, .tuning_budget = absl::ZeroDuration()};
  const regions::RegionalProgram regional = regions::PlanRegions(model.program, *backend, options);
  terminal.err << FallbackText(model, regional);
  std::vector<TensorView> inputs;
  for (const fallback::Port& port : model.program->inputs()) {
    const NpyArray& array = arrays.at(port.name);
    inputs.push_back({array.dtype, array.shape, array.bytes});
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend->NewStream(command.threads));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<fallback::Array> outputs, regional.program->Run(inputs, *stream));
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
