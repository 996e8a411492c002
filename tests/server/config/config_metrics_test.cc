#include "server/config/config_metrics.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status Apply(const std::string& family, const std::string& buckets, ModelSpec& spec) {
  inference::ModelConfig config;
  SWIZZLE_CHECK(google::protobuf::TextFormat::ParseFromString(
      Concat("model_metrics { metric_control { metric_identifier { family: '", family,
             "' } histogram_options { buckets: ", buckets, " } } }"),
      &config));
  return ApplyMetrics(config, spec);
}

TEST(ApplyMetrics, HistogramsGetEdges) {
  ModelSpec spec;
  ASSERT_TRUE(Apply("swizzle_batch_size", "[2, 4.5, 9]", spec).ok());
  EXPECT_THAT(spec.histogram_buckets.at("swizzle_batch_size"), ElementsAre(2, 4.5, 9));
}

TEST(ApplyMetrics, TritonsHistogramStandsForOurs) {
  ModelSpec spec;
  ASSERT_TRUE(Apply("nv_inference_first_response_histogram_ms", "[100, 500]", spec).ok());
  EXPECT_THAT(spec.histogram_buckets.at("swizzle_request_duration_seconds"),
              ElementsAre(::testing::DoubleEq(0.1), ::testing::DoubleEq(0.5)));
}

TEST(ApplyMetrics, OthersAreRefusedWithWhatThereIs) {
  ModelSpec spec;
  for (const char* family : {"", "nv_inference_count", "swizzle_queue_depth"}) {
    EXPECT_THAT(std::string(Apply(family, "[1]", spec).message()),
                HasSubstr(Concat("is '", family,
                                 "'; histograms are 'nv_inference_first_response_histogram_ms', "
                                 "'swizzle_request_duration_seconds'")));
  }
  for (const char* buckets : {"[]", "[1, 1]", "[2, 1]", "[inf]", "[nan]"}) {
    EXPECT_THAT(std::string(Apply("swizzle_batch_size", buckets, spec).message()), HasSubstr("numbers that ascend"))
        << buckets;
  }
}

}  // namespace
}  // namespace swizzle
