// Settings of the log and of traces as Triton's clients of HTTP read and write them: an object with a member for each.
// They become gRPC's messages, and are made of them. Functions only.
#ifndef SWIZZLE_SERVER_REST_SETTINGS_JSON_H_
#define SWIZZLE_SERVER_REST_SETTINGS_JSON_H_

#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {

// An empty text is no settings. INVALID_ARGUMENT for what is no object, or has a value that no setting has.
StatusOr<inference::LogSettingsRequest> ReadLogSettings(std::string_view text);
// null stands for what the server was started with. `model`: empty for the server's.
StatusOr<inference::TraceSettingRequest> ReadTraceSettings(std::string_view text, std::string_view model);

std::string WriteSettings(const inference::LogSettingsResponse& settings);
std::string WriteSettings(const inference::TraceSettingResponse& settings);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_SETTINGS_JSON_H_
