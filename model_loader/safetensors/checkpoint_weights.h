// The tensors of a checkpoint's encoder, and of the classifier that config.json may have behind it, by the names that
// their family has for them (tensor_names.h), each to be taken once, and real numbers or whole ones.
//
// A weight of whole numbers, as the formats int-quantized and naive-quantized have it, is `P.weight` INT8 [out, in] and
//   P.weight_scale        FP32, FP16 or BF16: one, or one a row, [out, 1]
//   P.weight_zero_point   INT8 of the same shape, where they are not zeros
//   P.input_scale, P.input_zero_point   one each, of what the layer reads, where that is quantised by scale
// It stands for scale * (whole - zero point). Thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_CHECKPOINT_WEIGHTS_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_CHECKPOINT_WEIGHTS_H_

#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/compression_config.h"
#include "model_loader/safetensors/encoder_config.h"
#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle {

// A scale (FP32) and perhaps a zero point (INT8), of one shape: [], or [rows].
struct Scaling {
  Tensor scales;
  std::optional<Tensor> zero_points;
};

// A linear layer's. `matrix` [out, in] is FP32, or INT8 where there are `numbers`.
struct LinearWeight {
  Tensor matrix;
  std::optional<Scaling> numbers;
  std::optional<Scaling> input;  // of what it reads, where that is quantised by scale
};

class CheckpointWeights {
 public:
  // `prefix`: of the encoder's tensors (tensor_names.h). INVALID_ARGUMENT if a tensor is there with it and without.
  static StatusOr<CheckpointWeights> From(const EncoderConfig& config, std::string_view prefix,
                                          const Compression& compression, TensorMap tensors);

  bool Has(const std::string& name) const { return tensors_.contains(name); }

  // In FP32 and of this shape, in which -1 stands for any number from 1 on. INVALID_ARGUMENT if it or its scale is
  // missing or of another shape, UNIMPLEMENTED for types that stand for no real number.
  StatusOr<Tensor> Take(const std::string& name, const Shape& shape);

  // `name`.weight. Whole numbers stay such where what the layer reads is quantised, too.
  StatusOr<LinearWeight> TakeLinear(const std::string& name, const Shape& shape);

  // INVALID_ARGUMENT, naming one, if tensors are left.
  Status CheckAllTaken() const;

 private:
  explicit CheckpointWeights(const Compression& compression) : compression_(compression) {}

  StatusOr<Tensor> TakeAsStored(const std::string& name, const Shape& shape);
  bool IsWhole(const std::string& name) const;
  StatusOr<Scaling> TakeScaling(const std::string& prefix, int64_t rows);

  Compression compression_;
  TensorMap tensors_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_CHECKPOINT_WEIGHTS_H_
