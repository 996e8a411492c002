// Whose fault it is that an operator refuses its inputs: a request's, where tensors of other sizes or elements would
// do, or the model's, since no request changes its types, ranks, attributes and constants.
//
// This is tried: the node runs on zeros and on ones of many sizes, those among them that its constants and attributes
// speak of. It is said to refuse always only where it refused all of them.
//
// Functions are thread-safe, and so is Verdicts.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_REFUSAL_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_REFUSAL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/interpreter/values/array.h"

namespace swizzle::interpreter {

// An input of a node that refused it.
struct Operand {
  Array given;
  std::vector<bool> free;      // by dimension: whether requests decide its size
  bool free_elements = false;  // whether they decide its elements; else those are the given ones

  bool IsFixed() const;
};

// Whether the node refuses all inputs of these types and ranks that are fixed where the operands are. `run` runs it.
bool RefusesAlways(const Node& node, std::span<const Operand> operands, Memory& memory,
                   const std::function<Status(std::span<const Array>)>& run);

// Sizes that dimensions of the node's inputs may have to have, because of its attributes and other inputs. Ascending,
// none is twice.
std::vector<int64_t> SizesAround(const Node& node, std::span<const Array> inputs);

// FAILED_PRECONDITION with what was said, and whose fault that is, since no request can do anything about it: the
// model's, or, of what is UNIMPLEMENTED, the server's.
Status NoRequestHelps(const Status& said);

// What was found of each node that refused inputs, so that it is found once.
class Verdicts {
 public:
  explicit Verdicts(size_t nodes) : verdicts_(nodes) {}

  // `find` may run in several threads at once.
  bool RefusesAlways(size_t node, const std::function<bool()>& find);

 private:
  enum Verdict : uint8_t { kUnknown, kSometimes, kAlways };
  std::vector<std::atomic<uint8_t>> verdicts_;
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_RUN_REFUSAL_H_
