// Runs a plan of token sequences: requests [rows, length] are packed, computed token by token, and spread out again.
#ifndef SWIZZLE_SERVER_MODEL_SEQUENCE_SESSION_H_
#define SWIZZLE_SERVER_MODEL_SEQUENCE_SESSION_H_

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model_loader/plan/run/plan.h"
#include "model_loader/plan/run/token_packing.h"
#include "server/model/model.h"
#include "server/model/runner_seat.h"
#include "server/model/tensor_ports.h"

namespace swizzle {

// What is checked of a request before it joins a batch, and how its tokens are packed. Immutable.
class SequenceRules {
 public:
  // `spec` and `ports` outlive this. `plan`, whose network has sequences, need not: every plan of the network has the
  // same limits.
  SequenceRules(const ModelSpec& spec, const PortMap& ports, const Plan& plan);

  const PackingRules& packing() const { return packing_; }
  std::optional<TensorView> MaskOf(std::span<const TensorView> inputs) const;
  // Whose numbers positions count; absent: all tokens.
  std::optional<TensorView> CountedOf(std::span<const TensorView> inputs) const;
  // Whose numbers tell where sequences end; absent: with their rows.
  std::optional<TensorView> EndsOf(std::span<const TensorView> inputs) const;

  // The tokens of the request that are computed, as Model::CheckRequest has them. INVALID_ARGUMENT, naming the model
  // and the input, if inputs differ in shape, an id or a position has no row in its table, a mask is neither 0 nor 1,
  // or what has to run together has too many tokens.
  StatusOr<std::vector<int64_t>> Check(std::span<const TensorView> inputs) const;

  // What a client has to know to make up requests that pass Check: see the properties in model_facts.h.
  void Describe(std::map<std::string, std::string>& properties) const;

 private:
  Status CheckShapes(std::span<const TensorView> inputs) const;
  Status CheckValues(std::span<const TensorView> inputs) const;
  StatusOr<std::vector<int64_t>> CountRows(std::span<const TensorView> inputs) const;

  const ModelSpec& spec_;
  const int64_t max_batch_, max_tokens_, position_limit_;
  std::vector<int64_t> id_limits_;            // by input of the specification
  int mask_ = -1, counted_ = -1, ends_ = -1;  // inputs of the specification
  PackingRules packing_;
};

// Of plans in this seat (PlanRunner). The other arguments outlive the session.
std::unique_ptr<Session> NewSequenceSession(const SequenceRules& rules, const PortMap& ports,
                                            std::shared_ptr<RunnerSeat> seat, Clock& clock);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_SEQUENCE_SESSION_H_
