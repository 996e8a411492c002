// A compiled model as the server runs it: batches of rows (batch_session.h), or of packed sequences
// (sequence_session.h).
#ifndef SWIZZLE_SERVER_MODEL_SERVED_MODEL_H_
#define SWIZZLE_SERVER_MODEL_SERVED_MODEL_H_

#include <memory>
#include <vector>

#include "model_loader/compiled/compiled_model.h"
#include "server/model/compute_turns.h"
#include "server/model/model.h"

namespace swizzle {

// Thread-safe.
class ServedModel : public Model {
 public:
  // Sessions on this device run the model, which computes the same, from their next batch on; none is lost, and when
  // this returns nothing runs on the one before. RESOURCE_EXHAUSTED if memory for it can't be had: sessions then go on
  // with what they have. REQUIRES: calls don't overlap.
  virtual Status Replace(size_t device, const CompiledModel& model) = 0;
};

// How sessions run.
struct SessionOptions {
  int threads = 0;                                // ModelRunOptions::threads
  interpreter::Limits limits = {};                // a batch in regions beyond them fails with RESOURCE_EXHAUSTED
  std::shared_ptr<ComputeTurns> turns = nullptr;  // on the CPU they compute when it lets them; null: at any time
};

// `spec` is DeriveSpec's, possibly changed by a configuration (FitSpec); spec() of the model says what its -1s are.
// `models` are of the same file, one a device: sessions take them in turn. Their backends outlive the result. Errors
// are FitSpec's, and FAILED_PRECONDITION if no request can be computed.
StatusOr<std::shared_ptr<ServedModel>> NewServedModel(ModelSpec spec, std::vector<CompiledModel> models,
                                                      const SessionOptions& options = {});

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_SERVED_MODEL_H_
