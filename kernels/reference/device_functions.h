// Device functions by the plainest loops, on the host's memory: the truth for tests, and what a device of tests
// computes with. Works at once; the stream is not looked at.
#ifndef SWIZZLE_KERNELS_REFERENCE_DEVICE_FUNCTIONS_H_
#define SWIZZLE_KERNELS_REFERENCE_DEVICE_FUNCTIONS_H_

#include "kernels/backend/device_functions.h"

namespace swizzle::reference {

class HostFunctions : public DeviceFunctions {
 public:
  void Copy(const StridedCopy& call, Stream& stream) const override;
  void Map(const Pointwise& call, Stream& stream) const override;
  void Reduce(const RowsReduced& call, Stream& stream) const override;
  void Sum(const RowsSummed& call, Stream& stream) const override;
  void Softmax(const RowsSoftmax& call, Stream& stream) const override;
  void Normalise(const RowsNormalised& call, Stream& stream) const override;
  bool Attends(const HeadsAttended&) const override { return true; }
  void Attend(const HeadsAttended& call, Stream& stream) const override;
  void Pick(const Picks& call, Stream& stream) const override;
  void Multiply(const StackedProduct& call, Stream& stream) const override;
  void Gather(const ColumnsGathered& call, Stream& stream) const override;
  void Sum(const ColumnsSummed& call, Stream& stream) const override;
  void Resize(const Resized& call, Stream& stream) const override;
  void Pool(const Pooled& call, Stream& stream) const override;
};

}  // namespace swizzle::reference

#endif  // SWIZZLE_KERNELS_REFERENCE_DEVICE_FUNCTIONS_H_
