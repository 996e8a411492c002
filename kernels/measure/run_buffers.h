// What candidates for one layer are run with: operands with pseudo-random numbers, in the backend's memory.
#ifndef SWIZZLE_KERNELS_MEASURE_RUN_BUFFERS_H_
#define SWIZZLE_KERNELS_MEASURE_RUN_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/measure/measure_kernels.h"

namespace swizzle {

// The operands of runs of some kernels on one problem. All share them: each is as large as the largest layout needs.
// Move-only; the backend and the stream outlive it.
class RunBuffers {
 public:
  static StatusOr<RunBuffers> Make(Backend& backend, Stream& stream, std::span<const Contender> contenders,
                                   const Problem& problem);

  // Valid until the next call: so is the problem that they are of.
  KernelArgs Args(const Contender& contender, const Problem& problem);
  // What a plan's earlier steps would have written: the inputs, residual included. Valid until the next call.
  Stream::Operands Activations(const Contender& contender, const Problem& problem);

 private:
  // One operand, in one type.
  struct DrawnOperand {
    int64_t elements = 0;
    const std::byte* data = nullptr;
  };

  RunBuffers(Backend& backend, Stream& stream) : backend_(&backend), stream_(&stream) {}

  StatusOr<std::byte*> Add(size_t bytes);
  // A copy in the backend's memory.
  template <typename T>
  StatusOr<std::span<const T>> Place(const std::vector<T>& values);
  void NeedInputs(const KernelKey& key, const Problem& problem);
  Status DrawInputs(const Problem& problem);
  Status DrawInput(const Problem& problem, size_t index, DType dtype, DrawnOperand& operand);
  Status DrawSequences(const Problem& problem);

  Backend* backend_;
  Stream* stream_;
  std::vector<std::unique_ptr<Buffer>> owned_;
  std::vector<std::map<DType, DrawnOperand>> inputs_;
  std::vector<Operand> args_inputs_;
  Problem args_problem_;
  std::vector<std::span<const std::byte>> activations_;
  std::byte* output_ = nullptr;
  std::byte* workspace_ = nullptr;
  Sequences sequences_;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_MEASURE_RUN_BUFFERS_H_
