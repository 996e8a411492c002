// What the CUDA backend computes of tensors beside its rows: kernels/backend/device_functions.h says what.
//
// Elements are counted in 32 bits wherever they fit: a division of 64 bits costs a thread as much as its memory does.
#ifndef SWIZZLE_KERNELS_CUDA_FUNCTIONS_FUNCTIONS_H_
#define SWIZZLE_KERNELS_CUDA_FUNCTIONS_FUNCTIONS_H_

#include "kernels/backend/device_functions.h"

namespace swizzle::cuda {

class CudaFunctions final : public DeviceFunctions {
 public:
  void Copy(const StridedCopy& call, Stream& stream) const override;  // strided_copy.cu
  void CopyAll(std::span<const StridedCopy> calls, Stream& stream) const override;
  void Map(const Pointwise& call, Stream& stream) const override;       // pointwise.cu
  void Reduce(const RowsReduced& call, Stream& stream) const override;  // rows.cu, down to Normalise
  void Sum(const RowsSummed& call, Stream& stream) const override;
  void Softmax(const RowsSoftmax& call, Stream& stream) const override;
  void Normalise(const RowsNormalised& call, Stream& stream) const override;
  bool Attends(const HeadsAttended& call) const override;  // view_attention.cu
  void Attend(const HeadsAttended& call, Stream& stream) const override;
  void Pick(const Picks& call, Stream& stream) const override;               // planes.cu, but for Multiply
  void Multiply(const StackedProduct& call, Stream& stream) const override;  // stacked_product.cc
  void Gather(const ColumnsGathered& call, Stream& stream) const override;
  void Sum(const ColumnsSummed& call, Stream& stream) const override;
  void Resize(const Resized& call, Stream& stream) const override;
  void Pool(const Pooled& call, Stream& stream) const override;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_FUNCTIONS_FUNCTIONS_H_
