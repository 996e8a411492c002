// Triton's settings of traces, which the RPC TraceSetting reads and changes, over server/tracing/trace_sampling.
//
// trace_level is OFF or TIMESTAMPS, trace_rate N stands for one request in N (0: only those whose caller records them),
// trace_count is how many traces are still to come (-1: any number). A setting without values has again what the server
// was started with. Files and tensors are not traced: trace_file, log_frequency and trace_mode are what they are.
// Thread-safe.
#ifndef SWIZZLE_SERVER_RPC_TRACE_SETTINGS_H_
#define SWIZZLE_SERVER_RPC_TRACE_SETTINGS_H_

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "server/tracing/trace_sampling.h"

namespace swizzle {

// All that `request` names, or, with INVALID_ARGUMENT that names the setting, nothing. FAILED_PRECONDITION where
// nothing is traced: `sampling` is null.
Status ApplyTraceSettings(const inference::TraceSettingRequest& request, TraceSampling* sampling);

inference::TraceSettingResponse DescribeTraceSettings(const TraceSampling* sampling);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_TRACE_SETTINGS_H_
