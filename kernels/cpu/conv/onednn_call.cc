#include "kernels/cpu/conv/onednn_call.h"

#include <omp.h>
#include <sys/mman.h>

namespace swizzle::cpu {

Status OnednnStatus(dnnl_status_t status, const char* what) {
  switch (status) {
    case dnnl_success:
      return absl::OkStatus();
    case dnnl_out_of_memory:
      return MakeError(StatusCode::kResourceExhausted, "oneDNN ran out of memory: ", what);
    case dnnl_unimplemented:
      return Unimplemented("oneDNN has no such operation: ", what);
    default:
      return MakeError(StatusCode::kInternal, "oneDNN failed with status ", static_cast<int>(status), ": ", what);
  }
}

const dnnl::engine& OnednnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& OnednnStream() {
  thread_local dnnl::stream stream(OnednnEngine());
  omp_set_num_threads(1);
  return stream;
}

Status CheckCodeRoom() {
  constexpr size_t kMostCodeBytes = size_t{32} << 20;  // a primitive has some hundred KB, twenty threads make one each
  void* const room = mmap(nullptr, kMostCodeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return OnednnStatus(dnnl_out_of_memory, "there is no address space for its code");
  munmap(room, kMostCodeBytes);
  return absl::OkStatus();
}

}  // namespace swizzle::cpu
