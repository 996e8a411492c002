// Triton's settings of the log, which the RPC LogSettings reads and changes, over server/telemetry/logging.
//
// log_info, log_warning and log_error turn events of a level on and off, log_verbose_level those for debugging.
// log_format is "text", "json", or "ISO8601" (text with such times); "default" stands for what the server was started
// with. log_file is always empty, which is standard error. Thread-safe.
#ifndef SWIZZLE_SERVER_RPC_LOG_SETTINGS_H_
#define SWIZZLE_SERVER_RPC_LOG_SETTINGS_H_

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {

// All that `request` names, or, with INVALID_ARGUMENT that names the setting, nothing.
Status ApplyLogSettings(const inference::LogSettingsRequest& request);

inference::LogSettingsResponse DescribeLogSettings();

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_LOG_SETTINGS_H_
