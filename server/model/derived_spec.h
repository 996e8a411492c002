// The specification of a model that no configuration describes, and whether one that a configuration changed fits.
#ifndef SWIZZLE_SERVER_MODEL_DERIVED_SPEC_H_
#define SWIZZLE_SERVER_MODEL_DERIVED_SPEC_H_

#include <memory>

#include "model_loader/compiled/compiled_model.h"
#include "server/model/model.h"
#include "server/model/tensor_ports.h"

namespace swizzle {

// The max_batch_size of a model served with no configuration, where its requests may share a batch.
inline constexpr int64_t kDerivedMaxBatchSize = 64;

// Inputs, outputs, and max_batch_size: kDerivedMaxBatchSize where the batch dimension is free, and rows are proven to
// be independent; else 0: dims then are exactly the model's, free ones -1, and requests run alone. name, version and
// platform are the caller's to fill in; whatever a configuration says is set afterwards. UNIMPLEMENTED if an input or
// output has no declared type or shape.
StatusOr<ModelSpec> DeriveSpec(const ModelInterface& interface);

// The model with the inputs' dimensions that the specification fixes, where it runs in regions: requests have no other
// sizes, and regions are planned for those. As it was where the two do not fit.
RunnableModel WithServedInputs(RunnableModel model, const ModelSpec& spec);

// Fits `spec`, DeriveSpec's and possibly changed, to the model: finds its ports, and resolves its -1s. Tensors may
// stand in another order, outputs may be left out, and max_batch_size may be anything up to what is planned for; 0
// where the batch is free: requests then run alone. INVALID_ARGUMENT, naming the model and the tensor, if it does not
// fit.
StatusOr<PortMap> FitSpec(ModelSpec& spec, const CompiledModel& model);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_DERIVED_SPEC_H_
