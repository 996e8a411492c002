// What a model takes and gives, whatever runs it.
#ifndef SWIZZLE_MODEL_LOADER_COMPILED_MODEL_INTERFACE_H_
#define SWIZZLE_MODEL_LOADER_COMPILED_MODEL_INTERFACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_loader/interpreter/run/executor.h"
#include "model_loader/load/loader.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

// Value type.
struct ModelInterface {
  std::vector<interpreter::Port> inputs, outputs;  // batch dimension included, -1 where it is free
  int64_t fixed_batch = 0;                         // rows of every run, where they are fixed and planned for; else 0
  std::optional<std::string> batch_obstacle = {};  // what keeps requests from sharing a batch, where that isn't fixed
  bool has_sequences = false;                      // of tokens, which are packed
  int64_t longest = 0;                             // of these; 0: any length
  // By input of a network: what whole numbers in it have to be below, 0 where nothing says; of a mask 2.
  std::vector<int64_t> limits = {};
  int mask = -1;  // the input that is one; -1: none
};
ModelInterface InterfaceOf(const Network& network);
ModelInterface InterfaceOf(const Plan& plan);  // whose network has no weights any more
ModelInterface InterfaceOf(const interpreter::Program& program);
ModelInterface InterfaceOf(const RunnableModel& model);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_COMPILED_MODEL_INTERFACE_H_
