#include "kernels/cpu/conv/sgemm.h"

#include <omp.h>

#include <algorithm>

#include "kernels/cpu/conv/onednn_call.h"

namespace swizzle::cpu {

Status Sgemm(int64_t m, int64_t n, int64_t k, const SgemmOperand& a, const SgemmOperand& b, float* c,
             int64_t c_stride) {
  if (m == 0 || n == 0) return absl::OkStatus();
  if (k == 0) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_stride, n, 0.0f);
    return absl::OkStatus();
  }
  omp_set_num_threads(1);
  const auto stride = [](const SgemmOperand& operand) { return std::max<int64_t>(operand.stride, 1); };
  const dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                                          stride(a), b.data, stride(b), 0.0f, c, c_stride);
  return OnednnStatus(status, "sgemm");
}

}  // namespace swizzle::cpu
