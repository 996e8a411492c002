#include "kernels/cpu/conv/sgemm.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/base/mutex.h"
#include "kernels/cpu/conv/few_rows.h"
#include "kernels/cpu/conv/onednn_call.h"

namespace swizzle::cpu {
namespace {

Status Multiply(int64_t m, int64_t n, int64_t k, const SgemmOperand& a, const SgemmOperand& b, float* c,
                int64_t c_stride) {
  omp_set_num_threads(1);
  const auto stride = [](const SgemmOperand& operand) { return std::max<int64_t>(operand.stride, 1); };
  const dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                                          stride(a), b.data, stride(b), 0.0f, c, c_stride);
  return OnednnStatus(status, "sgemm");
}

// Multiplies one product of each shape that oneDNN has code for: vectors, few rows or columns, copied operands.
Status MultiplyEachKind() {
  constexpr int64_t kShapes[][3] = {{1, 48, 48},  {48, 1, 48},  {3, 200, 64},
                                    {200, 3, 64}, {48, 48, 48}, {192, 160, 192}};
  constexpr int64_t kMost = 200;
  const std::vector<float> operand(kMost * kMost);
  std::vector<float> product(kMost * kMost);
  for (const auto& [m, n, k] : kShapes) {
    for (const bool a_turned : {false, true}) {
      for (const bool b_turned : {false, true}) {
        SWIZZLE_RETURN_IF_ERROR(Multiply(m, n, k, {operand.data(), a_turned ? m : k, a_turned},
                                         {operand.data(), b_turned ? k : n, b_turned}, product.data(), n));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status PrepareSgemm() {
  static std::atomic<bool> prepared = false;
  static Mutex mutex;
  if (prepared.load(std::memory_order_acquire)) return absl::OkStatus();
  const MutexLock lock(mutex);
  if (prepared.load(std::memory_order_relaxed)) return absl::OkStatus();
  SWIZZLE_RETURN_IF_ERROR(CheckCodeRoom());
  SWIZZLE_RETURN_IF_ERROR(MultiplyEachKind());
  prepared.store(true, std::memory_order_release);
  return absl::OkStatus();
}

Status Sgemm(int64_t m, int64_t n, int64_t k, const SgemmOperand& a, const SgemmOperand& b, float* c,
             int64_t c_stride) {
  if (m == 0 || n == 0) return absl::OkStatus();
  if (k == 0) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_stride, n, 0.0f);
    return absl::OkStatus();
  }
  if (const FewRowsProduct few = {m, n, k, a, b, c, c_stride}; HasFewRows(few)) {
    MultiplyFewRows(few);
    return absl::OkStatus();
  }
  SWIZZLE_RETURN_IF_ERROR(PrepareSgemm());
  return Multiply(m, n, k, a, b, c, c_stride);
}

}  // namespace swizzle::cpu
