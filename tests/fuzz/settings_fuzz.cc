// What anyone may ask of the log and of traces: the headers of a trace's context, and the RPCs LogSettings and
// TraceSetting, which whoever may read can send and whoever controls can have applied.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/rpc/log_settings.h"
#include "server/rpc/trace_settings.h"
#include "server/telemetry/logging.h"
#include "server/tracing/trace_context.h"
#include "tests/fuzz/quiet_protobuf.h"

namespace swizzle {
namespace {

// The headers, with a line feed between them.
void ReadContext(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const auto context = ParseTraceContext(text.substr(0, end), text.substr(std::min(end + 1, text.size())));
  if (!context) return;
  // What was taken is what stands there.
  SWIZZLE_CHECK(Hex(context->trace) == text.substr(3, 32) && Hex(context->span) == text.substr(36, 16));
  SWIZZLE_CHECK(context->state.size() <= 512);
}

template <typename Request>
Request Parsed(std::string_view bytes) {
  Request request;
  (void)request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  return request;
}

void ChangeTraces(std::string_view bytes) {
  static TraceSampling sampling(0.5);
  const TraceSettings before = sampling.Current();
  const Status status = ApplyTraceSettings(Parsed<inference::TraceSettingRequest>(bytes), &sampling);
  const TraceSettings after = sampling.Current();
  SWIZZLE_CHECK(after.share >= 0.0 && after.share <= 1.0 && after.count >= -1);
  SWIZZLE_CHECK(status.ok() || after == before);
  SWIZZLE_CHECK(DescribeTraceSettings(&sampling).settings_size() == 6);
}

void ChangeLog(std::string_view bytes) {
  const LogSettings before = CurrentLogSettings();
  const Status status = ApplyLogSettings(Parsed<inference::LogSettingsRequest>(bytes));
  SWIZZLE_CHECK(status.ok() || CurrentLogSettings() == before);
  SWIZZLE_CHECK(DescribeLogSettings().settings_size() == 6);
  ChangeLogSettings({.error = false, .warning = false, .info = false});  // what is fuzzed writes nothing
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      swizzle::ReadContext(rest);
      break;
    case 1:
      swizzle::ChangeTraces(rest);
      break;
    default:
      swizzle::ChangeLog(rest);
  }
  return 0;
}
