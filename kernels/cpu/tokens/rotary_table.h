// The weight of a rotary embedding as its kernels read it. Immutable.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ROTARY_TABLE_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ROTARY_TABLE_H_

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

class RotaryTable final : public PackedWeight {
 public:
  explicit RotaryTable(const Weight& weight) : table_(weight.ToDense()) {}
  size_t bytes() const override { return table_.values.size() * sizeof(float); }

  // [2 * pairs], see Rotation. REQUIRES: the table has the position.
  const float* Row(int64_t position) const { return table_.values.data() + position * table_.cols; }

 private:
  const DenseMatrix table_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ROTARY_TABLE_H_
