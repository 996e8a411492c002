// The rows of arrays for a model's inputs, some at a time: a run of all of them would hold every activation of every
// row at once, and a model of a fixed batch takes no other.
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_ROW_BATCHES_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_ROW_BATCHES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model_loader/compiled/model_interface.h"
#include "model_loader/files/npz.h"

namespace swizzle {

// A model's inputs among these arrays, in its order. INVALID_ARGUMENT where one is missing or too many.
StatusOr<std::vector<TensorView>> InputsAmong(std::span<const interpreter::Port> inputs, const NpyArrays& arrays);

// INVALID_ARGUMENT, naming the input, where one of these holds what is no number.
Status RefuseNan(std::span<const interpreter::Port> inputs, std::span<const TensorView> views);

// Of arrays that outlive it. Immutable.
class RowBatches {
 public:
  // Batches of the model's own size where the first dimension of all inputs is fixed to the same; of up to `most` rows
  // where that is free and requests may share a batch; else all is one batch. INVALID_ARGUMENT, naming the input, for
  // arrays that no batches can be made of.
  static StatusOr<RowBatches> Of(const ModelInterface& model, const NpyArrays& arrays, int64_t most);

  int64_t size() const { return rows_ == 0 ? 1 : (rows_ + rows_a_batch_ - 1) / rows_a_batch_; }
  int64_t rows() const { return rows_; }  // of all batches; 0: inputs have no rows in common, and are one batch
  // REQUIRES: index is below size().
  std::vector<TensorView> Batch(int64_t index) const;

 private:
  std::vector<TensorView> inputs_;
  int64_t rows_ = 0, rows_a_batch_ = 1;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_ROW_BATCHES_H_
