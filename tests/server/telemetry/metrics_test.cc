#include "server/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "server/telemetry/metric_families.h"
#include "server/telemetry/process_statistics.h"
#include "tests/support/http_get.h"

namespace swizzle {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ModelSpec Spec() {
  ModelSpec spec;
  spec.name = "m";
  spec.version = 3;
  spec.instance_count = 2;
  return spec;
}

ModelFacts SparseFacts() {
  ModelFacts facts;
  facts.sparsity = 0.875;
  facts.dense_bytes = 1000;
  facts.stored_bytes = 250;
  facts.device_bytes = 300;
  facts.kernels = {{"conv", "conv_csr_f32_avx2", 13}, {"conv", "conv_dense_f32_onednn", 2}};
  facts.dense_fallback_layers = 1;
  return facts;
}

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() {
    StatusOr<std::unique_ptr<Metrics>> metrics = NewMetrics("127.0.0.1:0");
    SWIZZLE_CHECK(metrics.ok());
    metrics_ = *std::move(metrics);
  }

  void Load(const ModelSpec& spec = Spec(), const ModelFacts& facts = SparseFacts()) {
    model_ = metrics_->ForModel(spec, facts, absl::Milliseconds(1500));
  }

  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<ModelMetrics> model_;  // after metrics_: it goes first
};

TEST_F(MetricsTest, SaysWhatAModelIs) {
  Load();
  EXPECT_THAT(metrics_->Text(),
              AllOf(HasSubstr("swizzle_model_ready{model=\"m\",version=\"3\"} 1\n"),
                    HasSubstr("swizzle_model_load_duration_seconds{model=\"m\",version=\"3\"} 1.5\n"),
                    HasSubstr("swizzle_model_load_failures_total{model=\"m\"} 0\n"),
                    HasSubstr("swizzle_model_sparsity_ratio{model=\"m\",version=\"3\"} 0.875\n"),
                    HasSubstr("swizzle_model_weight_bytes{kind=\"dense\",model=\"m\",version=\"3\"} 1000\n"),
                    HasSubstr("swizzle_model_weight_bytes{kind=\"stored\",model=\"m\",version=\"3\"} 250\n"),
                    HasSubstr("swizzle_model_weight_bytes{kind=\"device\",model=\"m\",version=\"3\"} 300\n"),
                    HasSubstr("swizzle_kernel_selected{device=\"cpu\",kernel=\"conv_csr_f32_avx2\",model=\"m\","
                              "op=\"conv\",version=\"3\"} 13\n"),
                    HasSubstr("swizzle_dense_fallback_layers{model=\"m\",version=\"3\"} 1\n")));
}

TEST_F(MetricsTest, CountsRequests) {
  Load();
  model_->RecordRequest(StatusCode::kOk, absl::Milliseconds(3));
  model_->RecordRequest(StatusCode::kOk, absl::Milliseconds(40));
  model_->RecordRequest(StatusCode::kInvalidArgument, absl::Microseconds(50));
  EXPECT_THAT(metrics_->Text(),
              AllOf(HasSubstr("swizzle_requests_total{code=\"OK\",model=\"m\",version=\"3\"} 2\n"),
                    HasSubstr("swizzle_requests_total{code=\"INVALID_ARGUMENT\",model=\"m\",version=\"3\"} 1\n"),
                    HasSubstr("swizzle_requests_total{code=\"INTERNAL\",model=\"m\",version=\"3\"} 0\n"),
                    HasSubstr("swizzle_request_duration_seconds_bucket{model=\"m\",version=\"3\",le=\"0.0001\"} 0\n"),
                    HasSubstr("swizzle_request_duration_seconds_bucket{model=\"m\",version=\"3\",le=\"0.005\"} 1\n"),
                    HasSubstr("swizzle_request_duration_seconds_bucket{model=\"m\",version=\"3\",le=\"+Inf\"} 2\n"),
                    HasSubstr("swizzle_request_duration_seconds_count{model=\"m\",version=\"3\"} 2\n")));
}

TEST_F(MetricsTest, LatencyHasSixteenBucketsUpToTenSeconds) {
  Load();
  const std::string text = metrics_->Text();
  size_t buckets = 0;
  for (size_t at = 0; (at = text.find("swizzle_request_duration_seconds_bucket{", at)) != std::string::npos; ++at)
    ++buckets;
  EXPECT_EQ(buckets, 16u + 1u);  // and +Inf
  EXPECT_THAT(text, HasSubstr("swizzle_request_duration_seconds_bucket{model=\"m\",version=\"3\",le=\"10\"} 0\n"));
}

TEST_F(MetricsTest, CountsBatches) {
  Load();
  const BatchTimes times = {absl::Milliseconds(1), absl::Milliseconds(30), absl::Milliseconds(2)};
  model_->RecordQueued(absl::Milliseconds(4));
  model_->RecordQueued(absl::Milliseconds(4));
  model_->RecordBatch({2, 5, 3920, BatchReason::kFull, times});
  model_->RecordBatch({1, 1, 784, BatchReason::kPreferred, times});
  model_->AddBusy(1, absl::Milliseconds(250));
  EXPECT_THAT(
      metrics_->Text(),
      AllOf(HasSubstr("swizzle_inferences_total{model=\"m\",version=\"3\"} 6\n"),
            HasSubstr("swizzle_batches_total{model=\"m\",reason=\"full\",version=\"3\"} 1\n"),
            HasSubstr("swizzle_batches_total{model=\"m\",reason=\"preferred\",version=\"3\"} 1\n"),
            HasSubstr("swizzle_batches_total{model=\"m\",reason=\"idle\",version=\"3\"} 0\n"),
            HasSubstr("swizzle_batch_size_bucket{model=\"m\",version=\"3\",le=\"4\"} 1\n"),
            HasSubstr("swizzle_batch_size_sum{model=\"m\",version=\"3\"} 6\n"),
            HasSubstr("swizzle_batch_positions_sum{model=\"m\",version=\"3\"} 4704\n"),
            HasSubstr("swizzle_stage_duration_seconds_count{model=\"m\",stage=\"queue\",version=\"3\"} 2\n"),
            HasSubstr("swizzle_stage_duration_seconds_sum{model=\"m\",stage=\"compute\",version=\"3\"} 0.06\n"),
            HasSubstr("swizzle_stream_busy_seconds_total{device=\"cpu\",model=\"m\",stream=\"0\",version=\"3\"} 0\n"),
            HasSubstr(
                "swizzle_stream_busy_seconds_total{device=\"cpu\",model=\"m\",stream=\"1\",version=\"3\"} 0.25\n")));
}

TEST_F(MetricsTest, FollowsTheQueue) {
  Load();
  model_->SetQueueDepth(7);
  model_->AddInflight(3);
  model_->AddInflight(-1);
  model_->RecordRejected(Rejection::kQueueFull, absl::ZeroDuration());
  model_->RecordRejected(Rejection::kTimeout, absl::Milliseconds(40));
  EXPECT_THAT(
      metrics_->Text(),
      AllOf(HasSubstr("swizzle_queue_depth{model=\"m\",version=\"3\"} 7\n"),
            HasSubstr("swizzle_inflight_requests{model=\"m\",version=\"3\"} 2\n"),
            HasSubstr("swizzle_rejected_requests_total{model=\"m\",reason=\"queue_full\",version=\"3\"} 1\n"),
            HasSubstr("swizzle_rejected_requests_total{model=\"m\",reason=\"timeout\",version=\"3\"} 1\n"),
            HasSubstr("swizzle_rejected_queue_seconds_sum{model=\"m\",reason=\"timeout\",version=\"3\"} 0.04\n")));
}

TEST_F(MetricsTest, UnloadingRemovesAllOfAVersion) {
  Load();
  model_->RecordRequest(StatusCode::kOk, absl::Milliseconds(1));
  model_.reset();
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("version=\"3\"")));
  EXPECT_THAT(metrics_->Text(), HasSubstr("swizzle_model_load_failures_total{model=\"m\"} 0\n"));
  Load();
  model_->RecordRequest(StatusCode::kOk, absl::Milliseconds(1));
  EXPECT_THAT(metrics_->Text(), AllOf(HasSubstr("swizzle_model_ready{model=\"m\",version=\"3\"} 1\n"),
                                      HasSubstr("swizzle_requests_total{code=\"OK\",model=\"m\",version=\"3\"} 1\n")));
}

TEST_F(MetricsTest, WhatReplacesAVersionGoesOnWithItsCounters) {
  Load();
  model_->RecordRequest(StatusCode::kOk, absl::Milliseconds(1));
  model_->SetQueueDepth(3);
  ModelFacts others = SparseFacts();
  others.sparsity = 0.5;
  std::unique_ptr<ModelMetrics> before = std::move(model_);
  Load(Spec(), others);
  model_->SetQueueDepth(2);
  before->RecordRequest(StatusCode::kOk, absl::Milliseconds(1));  // one that it had yet
  EXPECT_THAT(metrics_->Text(), HasSubstr("swizzle_queue_depth{model=\"m\",version=\"3\"} 5\n"));
  before->SetQueueDepth(0);
  before->RecordTuning({.state = TuningState::kDone, .replaced = std::make_shared<const ModelFacts>(SparseFacts())});
  before.reset();
  EXPECT_THAT(metrics_->Text(),
              AllOf(HasSubstr("swizzle_model_ready{model=\"m\",version=\"3\"} 1\n"),
                    HasSubstr("swizzle_queue_depth{model=\"m\",version=\"3\"} 2\n"),
                    HasSubstr("swizzle_model_sparsity_ratio{model=\"m\",version=\"3\"} 0.5\n"),
                    HasSubstr("swizzle_model_tuning_state{model=\"m\",state=\"off\",version=\"3\"} 1\n"),
                    HasSubstr("swizzle_requests_total{code=\"OK\",model=\"m\",version=\"3\"} 2\n")));
  EXPECT_EQ(model_->Statistics().success.count, 2);
}

// As when it turns out, late, that it cannot serve.
TEST_F(MetricsTest, WhatGoesBeforeTheVersionThatItWasToReplaceLeavesItsFacts) {
  Load();
  ModelFacts others = SparseFacts();
  others.sparsity = 0.5;
  metrics_->ForModel(Spec(), others, absl::Milliseconds(1)).reset();
  EXPECT_THAT(metrics_->Text(),
              AllOf(HasSubstr("swizzle_model_sparsity_ratio{model=\"m\",version=\"3\"} 0.875\n"),
                    HasSubstr("swizzle_model_load_duration_seconds{model=\"m\",version=\"3\"} 1.5\n")));
}

TEST_F(MetricsTest, CountsRequestsThatNoModelServed) {
  metrics_->RecordUnserved("failed", 2, StatusCode::kInternal);
  metrics_->RecordUnserved(kUnknownModel, 0, StatusCode::kNotFound);
  EXPECT_THAT(metrics_->Text(),
              AllOf(HasSubstr("swizzle_requests_total{code=\"INTERNAL\",model=\"failed\",version=\"2\"} 1\n"),
                    HasSubstr("swizzle_requests_total{code=\"NOT_FOUND\",model=\"(unknown)\",version=\"0\"} 1\n")));
}

TEST_F(MetricsTest, EscapesLabels) {
  metrics_->RecordLoadFailure("a\"b\\c\nd");
  EXPECT_THAT(metrics_->Text(), HasSubstr("swizzle_model_load_failures_total{model=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

// Lines of the exposition that start with `prefix`, without it, sorted.
std::vector<std::string> LinesOf(const std::string& text, std::string_view prefix) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(prefix)) lines.push_back(line.substr(prefix.size()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string_view TypeName(MetricType type) {
  if (type == MetricType::kCounter) return "counter";
  return type == MetricType::kGauge ? "gauge" : "histogram";
}

TEST_F(MetricsTest, ExportsTheFamiliesOfTheTableAndNoOthers) {
  Load();
  metrics_->ShowGpuMemory([] { return std::vector<GpuMemory>{{"cuda:0", {.used = 3, .total = 10}}}; });
  metrics_->ShowClientLoad(
      [] { return ClientLoad{.calls = {}, .credentials = {.tls = TlsLoad(), .tokens = ReloadCounts()}}; });
  metrics_->ShowSampled([] { return SampledCounts(); });
  metrics_->ShowGpuSensors(OpenGpuSensors(FAKE_NVML));
  metrics_->ShowTritonNames();
  const std::string text = metrics_->Text();
  std::vector<std::string> helps, types;
  for (const MetricFamily& family : kMetricFamilies) {
    helps.push_back(Concat(family.name, " ", family.help));
    types.push_back(Concat(family.name, " ", TypeName(family.type)));
  }
  std::sort(helps.begin(), helps.end());
  std::sort(types.begin(), types.end());
  EXPECT_EQ(LinesOf(text, "# HELP "), helps);
  EXPECT_EQ(LinesOf(text, "# TYPE "), types);
}

TEST_F(MetricsTest, SamplesHaveTheLabelsOfTheTable) {
  Load();
  metrics_->ShowGpuMemory([] { return std::vector<GpuMemory>{{"cuda:0", {.used = 3, .total = 10}}}; });
  metrics_->ShowClientLoad(
      [] { return ClientLoad{.calls = {}, .credentials = {.tls = TlsLoad(), .tokens = ReloadCounts()}}; });
  metrics_->ShowSampled([] { return SampledCounts(); });
  metrics_->ShowGpuSensors(OpenGpuSensors(FAKE_NVML));
  metrics_->ShowTritonNames();
  const std::string text = metrics_->Text();
  for (const MetricFamily& family : kMetricFamilies) {
    const bool histogram = family.type == MetricType::kHistogram;
    const std::vector<std::string> samples = LinesOf(text, Concat(family.name, histogram ? "_count" : ""));
    ASSERT_FALSE(samples.empty()) << family.name;
    for (const MetricLabel& label : family.labels()) {
      EXPECT_THAT(samples.front(), HasSubstr(Concat(label.name, "=\"")));
      for (const std::string_view value : label.values) {
        EXPECT_THAT(samples, Contains(HasSubstr(Concat(label.name, "=\"", value, "\"")))) << family.name;
      }
    }
    EXPECT_EQ(static_cast<size_t>(std::count(samples.front().begin(), samples.front().end(), '=')),
              family.label_count())
        << family.name;
  }
}

TEST(MetricLabelsTest, CodesAreWrittenAsAbseilDoes) {
  for (int code = 0; code <= static_cast<int>(StatusCode::kUnauthenticated); ++code) {
    EXPECT_EQ(LabelValue(static_cast<StatusCode>(code)), absl::StatusCodeToString(static_cast<StatusCode>(code)));
  }
}

TEST_F(MetricsTest, SaysWhatTheProcessIs) {
  const std::string text = metrics_->Text();
  for (const char* name :
       {"swizzle_build_info{", "process_cpu_seconds_total ", "process_resident_memory_bytes ",
        "process_virtual_memory_bytes ", "process_start_time_seconds ", "process_open_fds ", "process_max_fds "}) {
    EXPECT_THAT(text, HasSubstr(Concat("\n", name)));
  }
}

TEST_F(MetricsTest, AsksForTheMemoryOfGpusAtEachScrape) {
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("swizzle_gpu_")));
  std::vector<GpuMemory> gpus = {{"cuda:0", {.used = 3, .total = 10}}, {"cuda:2", {.used = 4, .total = 12}}};
  metrics_->ShowGpuMemory([&] { return gpus; });
  gpus[0].memory.used = 5;
  EXPECT_THAT(metrics_->Text(), AllOf(HasSubstr("swizzle_gpu_memory_used_bytes{device=\"cuda:0\"} 5\n"),
                                      HasSubstr("swizzle_gpu_memory_total_bytes{device=\"cuda:0\"} 10\n"),
                                      HasSubstr("swizzle_gpu_memory_used_bytes{device=\"cuda:2\"} 4\n")));
  gpus.clear();  // lost
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("swizzle_gpu_")));
}

TEST_F(MetricsTest, PromtoolFindsNothingToSay) {
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "promtool (Debian: prometheus) is not here";
  Load();
  metrics_->RecordLoadFailure("other");
  metrics_->ShowGpuMemory([] { return std::vector<GpuMemory>{{"cuda:0", {.used = 3, .total = 10}}}; });
  const std::string file = ::testing::TempDir() + "/exposition.txt";
  std::ofstream(file) << metrics_->Text();
  const std::string report = file + ".report";
  EXPECT_EQ(std::system(Concat("promtool check metrics <", file, " >", report, " 2>&1").c_str()), 0)
      << std::ifstream(report).rdbuf();
}

TEST_F(MetricsTest, ServesTheExposition) {
  Load();
  const std::string answer = HttpGet(metrics_->port(), "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(answer, HasSubstr("swizzle_model_ready{model=\"m\",version=\"3\"} 1\n"));
}

TEST_F(MetricsTest, ProbesFollowTheServer) {
  const int port = metrics_->port();
  EXPECT_THAT(HttpGet(port, "/livez"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(HttpGet(port, "/startupz"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("not started")));
  EXPECT_THAT(HttpGet(port, "/readyz"), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("not ready")));
  metrics_->SetStarted(true);
  metrics_->SetReady(true);
  EXPECT_THAT(HttpGet(port, "/startupz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(HttpGet(port, "/readyz"), StartsWith("HTTP/1.1 200 "));
  metrics_->SetReady(true, "model 'a' failed: why\n");
  EXPECT_THAT(HttpGet(port, "/readyz"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("ok\nmodel 'a' failed: why\n")));
  metrics_->SetReady(false, "model 'a' is loading\n");
  EXPECT_THAT(HttpGet(port, "/readyz"),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("not ready\nmodel 'a' is loading\n")));
  metrics_->SetLive(false);
  EXPECT_THAT(HttpGet(port, "/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(HttpGet(port, "/livez"), StartsWith("HTTP/1.1 503 "));
}

TEST_F(MetricsTest, ServesNothingElse) {
  EXPECT_THAT(HttpGet(metrics_->port(), "/nowhere"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(HttpGet(metrics_->port(), "/../etc/passwd"), Not(StartsWith("HTTP/1.1 200 ")));
  EXPECT_THAT(HttpGet(metrics_->port(), "/metrics", "POST"), StartsWith("HTTP/1.1 405 "));
}

TEST_F(MetricsTest, ShowsAPageAndAStatus) {
  for (const char* path : {"/", "/status"}) EXPECT_THAT(HttpGet(metrics_->port(), path), StartsWith("HTTP/1.1 503 "));
  metrics_->ShowStatus("<p>", [] { return std::string("{}"); });
  EXPECT_THAT(HttpGet(metrics_->port(), "/"),
              AllOf(HasSubstr("Content-Type: text/html"), ::testing::EndsWith("\r\n\r\n<p>")));
  EXPECT_THAT(HttpGet(metrics_->port(), "/status"),
              AllOf(HasSubstr("application/json"), ::testing::EndsWith("\r\n\r\n{}")));
  metrics_->ShowStatus("", nullptr);
  EXPECT_THAT(HttpGet(metrics_->port(), "/"), StartsWith("HTTP/1.1 503 "));
}

TEST_F(MetricsTest, StatisticsCountAsTritonDoes) {
  Load();
  const BatchTimes times = {absl::Milliseconds(1), absl::Milliseconds(30), absl::Milliseconds(2)};
  for (int i = 0; i < 2; ++i) model_->RecordQueued(absl::Milliseconds(4));
  model_->RecordBatch({2, 5, 5, BatchReason::kFull, times});
  model_->RecordQueued(absl::Milliseconds(4));
  model_->RecordBatch({1, 5, 5, BatchReason::kIdle, times});
  model_->RecordQueued(absl::Milliseconds(4));
  model_->RecordBatch({1, 1, 1, BatchReason::kIdle, times});
  for (int i = 0; i < 4; ++i) model_->RecordRequest(StatusCode::kOk, absl::Milliseconds(50));
  model_->RecordRequest(StatusCode::kInvalidArgument, absl::Milliseconds(1));

  const ModelStatisticsTotals totals = model_->Statistics();
  EXPECT_EQ(totals.inference_count, 11);
  EXPECT_EQ(totals.execution_count, 3);
  EXPECT_GT(totals.last_inference_ms, 0);
  EXPECT_EQ(totals.success.count, 4);
  EXPECT_EQ(totals.success.total, absl::Milliseconds(200));
  EXPECT_EQ(totals.fail.count, 1);
  EXPECT_EQ(totals.fail.total, absl::Milliseconds(1));
  EXPECT_EQ(totals.queue.count, 4);
  EXPECT_EQ(totals.queue.total, absl::Milliseconds(16));
  EXPECT_EQ(totals.compute.count, 4);
  EXPECT_EQ(totals.compute.total, absl::Milliseconds(120));
  EXPECT_EQ(totals.input.total, absl::Milliseconds(4));
  EXPECT_EQ(totals.output.total, absl::Milliseconds(8));
  ASSERT_EQ(totals.batches.size(), 2u);
  EXPECT_EQ(totals.batches[0].rows, 1);
  EXPECT_EQ(totals.batches[0].count, 1);
  EXPECT_EQ(totals.batches[1].rows, 5);
  EXPECT_EQ(totals.batches[1].count, 2);
  EXPECT_EQ(totals.batches[1].compute, absl::Milliseconds(60));
}

TEST(NewMetricsTest, SaysWhyItCannotListen) {
  const Status status = NewMetrics("8002").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith("metrics: '8002' is not an address"));
}

TEST(ParseProcessStatTest, ReadsPastAnyName) {
  const std::string stat =
      "17 (a) b) S 1 17 17 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 5 0 300 4096000 25 18446744073709551615 0 0\n";
  const std::optional<ProcessStatistics> process = ParseProcessStat(stat, 100, 4096);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->cpu_seconds, 2.0);
  EXPECT_EQ(process->start_time_seconds, 3.0);
  EXPECT_EQ(process->virtual_bytes, 4096000.0);
  EXPECT_EQ(process->resident_bytes, 25.0 * 4096.0);
}

TEST(ParseProcessStatTest, RefusesWhatIsCutShort) {
  EXPECT_FALSE(ParseProcessStat("", 100, 4096).has_value());
  EXPECT_FALSE(ParseProcessStat("17 (a) S 1 17 17", 100, 4096).has_value());
}

}  // namespace
}  // namespace swizzle
