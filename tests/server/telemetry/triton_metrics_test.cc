#include "server/telemetry/triton_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/telemetry/metrics.h"

namespace swizzle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TritonMetricsTest : public ::testing::Test {
 protected:
  TritonMetricsTest() : metrics_(*NewMetrics("127.0.0.1:0")) { metrics_->ShowTritonNames(); }

  std::unique_ptr<ModelMetrics> Load() {
    ModelSpec spec;
    spec.name = "m";
    return metrics_->ForModel(spec, ModelFacts(), absl::ZeroDuration());
  }

  // One batch of two requests and three rows.
  static void RunBatch(ModelMetrics& model) {
    for (int i = 0; i < 2; ++i) model.RecordQueued(absl::Microseconds(40));
    model.RecordBatch({2, 3, 3, BatchReason::kFull,
                       BatchTimes{absl::Microseconds(1), absl::Microseconds(30), absl::Microseconds(2)}});
    for (int i = 0; i < 2; ++i) model.RecordRequest(StatusCode::kOk, absl::Microseconds(100));
  }

  const std::unique_ptr<Metrics> metrics_;
};

TEST_F(TritonMetricsTest, NobodySeesThemUnasked) {
  const auto metrics = *NewMetrics("127.0.0.1:0");
  ModelSpec spec;
  const auto model = metrics->ForModel(spec, ModelFacts(), absl::ZeroDuration());
  EXPECT_THAT(metrics->Text(), Not(HasSubstr("nv_")));
}

TEST_F(TritonMetricsTest, CountsRequestsRowsAndBatches) {
  const auto model = Load();
  RunBatch(*model);
  EXPECT_THAT(metrics_->Text(), AllOf(HasSubstr("# TYPE nv_inference_request_success counter\n"),
                                      HasSubstr("nv_inference_request_success{model=\"m\",version=\"1\"} 2\n"),
                                      HasSubstr("nv_inference_count{model=\"m\",version=\"1\"} 3\n"),
                                      HasSubstr("nv_inference_exec_count{model=\"m\",version=\"1\"} 1\n")));
}

TEST_F(TritonMetricsTest, EachRequestCountsItsWholeBatch) {
  const auto model = Load();
  RunBatch(*model);
  EXPECT_THAT(metrics_->Text(),
              AllOf(HasSubstr("nv_inference_request_duration_us{model=\"m\",version=\"1\"} 200\n"),
                    HasSubstr("nv_inference_queue_duration_us{model=\"m\",version=\"1\"} 80\n"),
                    HasSubstr("nv_inference_compute_input_duration_us{model=\"m\",version=\"1\"} 2\n"),
                    HasSubstr("nv_inference_compute_infer_duration_us{model=\"m\",version=\"1\"} 60\n"),
                    HasSubstr("nv_inference_compute_output_duration_us{model=\"m\",version=\"1\"} 4\n")));
}

TEST_F(TritonMetricsTest, FailuresHaveTritonsReasons) {
  const auto model = Load();
  for (const StatusCode code :
       {StatusCode::kResourceExhausted, StatusCode::kUnavailable, StatusCode::kDeadlineExceeded, StatusCode::kCancelled,
        StatusCode::kInternal, StatusCode::kInternal, StatusCode::kInvalidArgument}) {
    model->RecordRequest(code, absl::Microseconds(1));
  }
  EXPECT_THAT(metrics_->Text(),
              AllOf(HasSubstr("nv_inference_request_failure{model=\"m\",reason=\"REJECTED\",version=\"1\"} 3\n"),
                    HasSubstr("nv_inference_request_failure{model=\"m\",reason=\"CANCELED\",version=\"1\"} 1\n"),
                    HasSubstr("nv_inference_request_failure{model=\"m\",reason=\"BACKEND\",version=\"1\"} 2\n"),
                    HasSubstr("nv_inference_request_failure{model=\"m\",reason=\"OTHER\",version=\"1\"} 1\n"),
                    HasSubstr("nv_inference_request_success{model=\"m\",version=\"1\"} 0\n")));
}

TEST_F(TritonMetricsTest, FollowsTheQueue) {
  const auto model = Load();
  model->SetQueueDepth(7);
  EXPECT_THAT(metrics_->Text(), HasSubstr("nv_inference_pending_request_count{model=\"m\",version=\"1\"} 7\n"));
}

// A reload has both for a moment, and the scrape must not have one sample twice.
TEST_F(TritonMetricsTest, CountersGoOnOverAReload) {
  auto before = Load();
  RunBatch(*before);
  const auto after = Load();
  RunBatch(*after);
  const std::string sample = "nv_inference_request_success{model=\"m\",version=\"1\"} ";
  std::string text = metrics_->Text();
  EXPECT_THAT(text, HasSubstr(sample + "4\n"));
  EXPECT_EQ(text.find(sample), text.rfind(sample));
  before = nullptr;
  RunBatch(*after);
  text = metrics_->Text();
  EXPECT_THAT(text, AllOf(HasSubstr(sample + "6\n"),
                          HasSubstr("nv_inference_compute_infer_duration_us{model=\"m\",version=\"1\"} 180\n")));
}

TEST_F(TritonMetricsTest, WhatServesNoMoreIsNotShown) {
  auto model = Load();
  RunBatch(*model);
  model = nullptr;
  EXPECT_THAT(metrics_->Text(), Not(HasSubstr("nv_inference_")));
}

}  // namespace
}  // namespace swizzle
