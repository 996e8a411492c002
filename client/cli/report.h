// What commands print: measurements, tensors and a progress line.
#ifndef SWIZZLE_CLIENT_CLI_REPORT_H_
#define SWIZZLE_CLIENT_CLI_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/load_generator.h"
#include "client/tensor.h"
#include "nlohmann/json.hpp"

namespace swizzle::client {

using Json = nlohmann::ordered_json;

inline double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }
// 0 where no time went by.
inline double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// Prints one line of JSON.
void PrintJson(const Json& json, Terminal& terminal);

// What was measured, as JSON in milliseconds and as text. `rows` is the number of rows per request.
double RequestsPerSecond(const LoadReport& report);
Json ReportJson(const LoadReport& report, int64_t rows);
std::string ReportText(const LoadReport& report, int64_t rows);

// Names, types and shapes.
Json TensorsJson(const std::vector<TensorMetadata>& tensors);

// A tensor's elements as a flat JSON array; of BYTES, the strings.
Json ElementsJson(const Tensor& tensor);

// A progress line, redrawn in place, that tells how many of `total` requests (0: unknown) are answered; `label`, where
// there is one, stands before it. Draws nothing unless the terminal shows progress.
ProgressSink ProgressLine(Terminal& terminal, int64_t total, int64_t rows, const std::string& label = "");
void ClearProgressLine(Terminal& terminal);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_REPORT_H_
