#include "client/cli/report.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace swizzle::client {
namespace {

Json QuantilesJson(const std::vector<absl::Duration>& ascending) {
  return {{"p50", Milliseconds(Quantile(ascending, 0.5))},
          {"p90", Milliseconds(Quantile(ascending, 0.9))},
          {"p99", Milliseconds(Quantile(ascending, 0.99))},
          {"mean", Milliseconds(Mean(ascending))}};
}

std::string QuantilesText(const char* title, const std::vector<absl::Duration>& ascending) {
  return absl::StrFormat("  %-15s p50 %9.3f ms   p90 %9.3f ms   p99 %9.3f ms\n", title,
                         Milliseconds(Quantile(ascending, 0.5)), Milliseconds(Quantile(ascending, 0.9)),
                         Milliseconds(Quantile(ascending, 0.99)));
}

double Rate(int64_t count, absl::Duration elapsed) {
  return elapsed > absl::ZeroDuration() ? static_cast<double>(count) / absl::ToDoubleSeconds(elapsed) : 0;
}

template <typename T>
Json NumbersJson(const Tensor& tensor) {
  Json numbers = Json::array();
  for (const T value : tensor.Values<T>()) numbers.push_back(value);
  return numbers;
}

// REQUIRES: Check(tensor) is OK.
Json StringsJson(const Tensor& tensor) {
  Json strings = Json::array();
  for (size_t at = 0; at < tensor.data.size();) {
    uint32_t length;
    std::memcpy(&length, tensor.data.data() + at, sizeof(length));
    strings.push_back(tensor.data.substr(at + sizeof(length), length));
    at += sizeof(length) + length;
  }
  return strings;
}

}  // namespace

double RequestsPerSecond(const LoadReport& report) { return Rate(report.succeeded, report.elapsed); }

void PrintJson(const Json& json, Terminal& terminal) {
  terminal.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

Json ReportJson(const LoadReport& report, int64_t rows) {
  return {{"requests", report.succeeded},
          {"batch", rows},
          {"seconds", absl::ToDoubleSeconds(report.elapsed)},
          {"requests_per_second", Rate(report.succeeded, report.elapsed)},
          {"rows_per_second", Rate(report.succeeded * rows, report.elapsed)},
          {"latency_ms", QuantilesJson(report.latencies)},
          {"server_queue_ms", QuantilesJson(report.queues)},
          {"server_compute_ms", QuantilesJson(report.computes)}};
}

std::string ReportText(const LoadReport& report, int64_t rows) {
  return absl::StrCat(absl::StrFormat("  %-15s %.1f requests/s", "rate", Rate(report.succeeded, report.elapsed)),
                      absl::StrFormat("   %.1f rows/s\n", Rate(report.succeeded * rows, report.elapsed)),
                      QuantilesText("latency", report.latencies), QuantilesText("server queue", report.queues),
                      QuantilesText("server compute", report.computes));
}

Json TensorsJson(const std::vector<TensorMetadata>& tensors) {
  Json json = Json::array();
  for (const TensorMetadata& tensor : tensors) {
    json.push_back({{"name", tensor.name}, {"datatype", tensor.datatype}, {"shape", tensor.shape}});
  }
  return json;
}

Json ElementsJson(const Tensor& tensor) {
  if (tensor.datatype == "FP32") return NumbersJson<float>(tensor);
  if (tensor.datatype == "FP64") return NumbersJson<double>(tensor);
  if (tensor.datatype == "INT8") return NumbersJson<int8_t>(tensor);
  if (tensor.datatype == "INT16") return NumbersJson<int16_t>(tensor);
  if (tensor.datatype == "INT32") return NumbersJson<int32_t>(tensor);
  if (tensor.datatype == "INT64") return NumbersJson<int64_t>(tensor);
  if (tensor.datatype == "UINT8" || tensor.datatype == "BOOL") return NumbersJson<uint8_t>(tensor);
  if (tensor.datatype == "UINT32") return NumbersJson<uint32_t>(tensor);
  if (tensor.datatype == "UINT64") return NumbersJson<uint64_t>(tensor);
  if (tensor.datatype == "BYTES") return StringsJson(tensor);
  return NumbersJson<uint16_t>(tensor);  // UINT16, and the bit patterns of FP16 and BF16
}

ProgressSink ProgressLine(Terminal& terminal, int64_t total, int64_t rows, const std::string& label) {
  if (!terminal.show_progress) return [](int64_t, absl::Duration) {};
  return [&terminal, total, rows, label](int64_t answered, absl::Duration elapsed) {
    constexpr int kWidth = 24;
    terminal.err << "\r\033[K  " << label << (label.empty() ? "" : "  ");
    if (total > 0) {
      const int filled = static_cast<int>(kWidth * std::min(answered, total) / total);
      terminal.err << '[' << std::string(filled, '#') << std::string(kWidth - filled, ' ') << "] ";
    }
    terminal.err << absl::StrFormat("%d requests, %.0f s, %.1f rows/s", answered, absl::ToDoubleSeconds(elapsed),
                                    Rate(answered * rows, elapsed))
                 << std::flush;
  };
}

void ClearProgressLine(Terminal& terminal) {
  if (terminal.show_progress) terminal.err << "\r\033[K" << std::flush;
}

}  // namespace swizzle::client
