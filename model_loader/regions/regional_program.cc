#include "model_loader/regions/regional_program.h"

#include <utility>

namespace swizzle::regions {

int RegionalProgram::layers() const {
  size_t layers = 0;
  for (const auto* const places : {&regions, &again}) {
    for (const auto& region : *places) layers += region->plan()->report().layers.size();
  }
  return static_cast<int>(layers);
}

size_t RegionalProgram::interpreted_nodes() const {
  return on_device == nullptr ? program->interpreted_nodes() : static_cast<size_t>(on_device->placement().host_nodes);
}

std::string RegionalProgram::OperatorCounts() const {
  return on_device == nullptr ? program->OperatorCounts() : on_device->placement().OperatorCounts();
}

std::string RegionalProgram::Text() const {
  return Concat("regions: ", region_count(), " planned (", layers(), " layers), ", interpreted_nodes(),
                " interpreted nodes");
}

std::string_view RegionalProgram::HowItRuns() const {
  if (regions.empty()) return "on the interpreter, unoptimised";
  return interpreted_nodes() == 0 ? "in regions" : "in regions, with interpreted nodes between them";
}

std::string RegionalProgram::ZerosText() const {
  if (regions.empty()) return Concat("zeros in its weights bring nothing, since no layer is planned: ", unplanned);
  if (unplanned_layers == 0) return "";
  return Concat("zeros in the weights of ", unplanned_layers, " layers bring nothing, since these are not planned",
                refusals.empty() ? "" : ": " + refusals.front());
}

std::string RegionalProgram::PlaceText() const {
  if (on_device == nullptr) return not_on_device.empty() ? "" : Concat("; all run on the CPU: ", not_on_device);
  return Concat("; all regions run on ", std::string(on_device->device().name()), ", and ", device_nodes(),
                " nodes between them");
}

StatusOr<std::unique_ptr<interpreter::ProgramRunner>> RegionalProgram::NewRunner(Backend& host, int threads,
                                                                                 const interpreter::Limits& limits,
                                                                                 StepGate* gate) const {
  if (on_device != nullptr) return on_device->NewRunner(threads, limits);
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, host.NewStream(threads));
  return std::make_unique<interpreter::HostProgramRunner>(program, std::move(stream), limits, gate);
}

int64_t RegionalProgram::weight_bytes() const {
  int64_t bytes = on_device == nullptr ? program->weight_bytes() : on_device->constant_bytes();
  for (const auto& region : regions) bytes += region->plan()->report().device_bytes;
  return bytes;
}

}  // namespace swizzle::regions
