// How oneDNN is called. Its errors become Statuses: its C++ interface throws them, on whatever thread calls it. It runs
// on OpenMP, whose threads would fight with the stream's: every primitive is made for one thread and runs on one.
#ifndef SWIZZLE_KERNELS_CPU_CONV_ONEDNN_CALL_H_
#define SWIZZLE_KERNELS_CPU_CONV_ONEDNN_CALL_H_

#include <dnnl.h>

#include <dnnl.hpp>
#include <new>

#include "kernels/base/status.h"

namespace swizzle::cpu {

// OK for dnnl_success; RESOURCE_EXHAUSTED where memory is short, UNIMPLEMENTED for what oneDNN doesn't have, else
// INTERNAL. `what` names the call.
Status OnednnStatus(dnnl_status_t status, const char* what);

// The process's. Throws what oneDNN does.
const dnnl::engine& OnednnEngine();
// The calling thread's own. Also keeps OpenMP to one thread on it, which primitives have to be described after. Throws
// what oneDNN does.
dnnl::stream& OnednnStream();

// Calls work(). Thread-safe as far as `work` is.
template <typename Work>
Status CallOnednn(const Work& work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    return OnednnStatus(error.status == dnnl_success ? dnnl_runtime_error : error.status, error.what());
  } catch (const std::bad_alloc&) {
    return OnednnStatus(dnnl_out_of_memory, "a call");
  }
}

// RESOURCE_EXHAUSTED where less address space is left than oneDNN may take for code that it generates: it writes that
// without having looked whether it got the memory.
Status CheckCodeRoom();

// CallOnednn, for work that has code generated: that makes primitives or reorders.
template <typename Work>
Status MakeOnednn(const Work& work) {
  SWIZZLE_RETURN_IF_ERROR(CheckCodeRoom());
  return CallOnednn(work);
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_ONEDNN_CALL_H_
