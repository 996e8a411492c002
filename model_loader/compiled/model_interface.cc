#include "model_loader/compiled/model_interface.h"

#include <variant>

#include "model_loader/plan/run/plan_runner.h"

namespace swizzle {

namespace {

// limit_of: what the ids of an input have to be below.
template <typename LimitOf>
ModelInterface Described(const Network& network, const LimitOf& limit_of) {
  ModelInterface made;
  made.fixed_batch = network.batch_size;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const NetworkPort& port = network.inputs[i];
    made.inputs.push_back({port.name, port.dtype, DimsAt(network, port, -1)});
    made.limits.push_back(port.value == -1 ? 0 : limit_of(static_cast<int>(i)));
  }
  for (const NetworkPort& port : network.outputs) {
    made.outputs.push_back({port.name, port.dtype, DimsAt(network, port, -1)});
  }
  if (!network.sequences) return made;
  made.has_sequences = true;
  made.mask = network.sequences->mask;
  if (made.mask >= 0) made.limits[static_cast<size_t>(made.mask)] = 2;
  return made;
}

}  // namespace

ModelInterface InterfaceOf(const Network& network) {
  ModelInterface made =
      Described(network, [&](int i) { return network.LookupLimit(network.inputs[static_cast<size_t>(i)].value); });
  if (made.has_sequences) made.longest = network.LookupLimit(-1);
  return made;
}

ModelInterface InterfaceOf(const Plan& plan) {
  ModelInterface made = Described(plan.network(), [&](int i) { return plan.IdLimit(i); });
  if (made.has_sequences) made.longest = plan.PositionLimit();
  return made;
}

ModelInterface InterfaceOf(const interpreter::Program& program) {
  return {.inputs = program.inputs(), .outputs = program.outputs(), .batch_obstacle = program.batch_obstacle()};
}

ModelInterface InterfaceOf(const RunnableModel& model) {
  if (const auto* const loaded = std::get_if<LoadedModel>(&model)) return InterfaceOf(loaded->network);
  return InterfaceOf(*std::get<ProgramModel>(model).program);
}

}  // namespace swizzle
