#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CommandLine Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "swizzle-server");
  return ParseCommandLine(static_cast<int>(flags.size()), flags.data());
}

TEST(ParseCommandLine, DefaultsAreTheDocumentedOnes) {
  const CommandLine line = Parse({"--model-repository=/models"});
  ASSERT_FALSE(line.exit_code) << line.text;
  EXPECT_THAT(line.options.model_repositories, ElementsAre("/models"));
  EXPECT_EQ(line.options.grpc_address, "0.0.0.0:8001");
  EXPECT_EQ(line.options.metrics_address, "0.0.0.0:8002");
  EXPECT_EQ(line.options.device, "auto");
  EXPECT_EQ(line.options.port_file, "");
  EXPECT_EQ(line.options.threads, 0);
  EXPECT_EQ(line.options.pin_threads, PinThreads::kAuto);
  EXPECT_EQ(line.options.rpc.max_message_bytes, 64 << 20);
  EXPECT_EQ(line.options.drain_delay, absl::ZeroDuration());
  EXPECT_EQ(line.options.tuning_budget, absl::Seconds(15));
  EXPECT_EQ(line.options.tune, Tune::kBackground);
  EXPECT_EQ(line.options.ready.who, ReadyRule::Who::kAll);
  EXPECT_EQ(line.options.log_format, LogFormat::kText);
  EXPECT_EQ(line.options.log_level, LogLevel::kInfo);
  EXPECT_FALSE(line.options.triton_metrics);
  EXPECT_FALSE(line.options.sampling.any());
}

TEST(ParseCommandLine, TakesSeveralRepositories) {
  const CommandLine line = Parse({"--model-repository=/a", "--model-repository", "/b"});
  ASSERT_FALSE(line.exit_code) << line.text;
  EXPECT_THAT(line.options.model_repositories, ElementsAre("/a", "/b"));
}

TEST(ParseCommandLine, EveryFlagIsTakenOver) {
  const CommandLine line = Parse({"--model-repository",
                                  "/m",
                                  "--grpc-address=[::1]:0",
                                  "--metrics-address=localhost:65535",
                                  "--device=cpu",
                                  "--port-file=/p",
                                  "--threads=3",
                                  "--pin-threads=off",
                                  "--tune=before-ready",
                                  "--tuning-budget=0.5",
                                  "--weight-budget=1.5",
                                  "--tuning-cache=/t",
                                  "--ready=bert,resnet",
                                  "--drain-delay=2.5",
                                  "--max-message-bytes=1024",
                                  "--log-format=json",
                                  "--log-level=warning",
                                  "--metrics-compat=triton",
                                  "--request-log-rate=0.5",
                                  "--trace-endpoint=http://collector:4317",
                                  "--trace-rate=0.25"});
  ASSERT_FALSE(line.exit_code) << line.text;
  EXPECT_EQ(line.options.grpc_address, "[::1]:0");
  EXPECT_EQ(line.options.metrics_address, "localhost:65535");
  EXPECT_EQ(line.options.device, "cpu");
  EXPECT_EQ(line.options.port_file, "/p");
  EXPECT_EQ(line.options.threads, 3);
  EXPECT_EQ(line.options.pin_threads, PinThreads::kOff);
  EXPECT_EQ(line.options.tuning_budget, absl::Milliseconds(500));
  EXPECT_EQ(line.options.tune, Tune::kBeforeReady);
  EXPECT_EQ(line.options.ready.who, ReadyRule::Who::kNamed);
  EXPECT_THAT(line.options.ready.names, ElementsAre("bert", "resnet"));
  EXPECT_EQ(line.options.weight_budget, 1.5);
  EXPECT_EQ(line.options.tuning_cache, "/t");
  EXPECT_EQ(line.options.drain_delay, absl::Milliseconds(2500));
  EXPECT_EQ(line.options.rpc.max_message_bytes, 1024);
  EXPECT_EQ(line.options.log_format, LogFormat::kJson);
  EXPECT_EQ(line.options.log_level, LogLevel::kWarning);
  EXPECT_TRUE(line.options.triton_metrics);
  EXPECT_EQ(line.options.sampling.request_log_rate, 0.5);
  EXPECT_EQ(line.options.sampling.trace_endpoint, "collector:4317");
  EXPECT_EQ(line.options.sampling.trace_rate, 0.25);
}

TEST(ParseCommandLine, BadFlagsAreNamedInOneLine) {
  const struct {
    std::vector<const char*> flags;
    const char* named;
  } cases[] = {
      {{}, "--model-repository: say where the models are"},
      {{"--model-repository=/m", "--port=1"}, "--port=1"},
      {{"--model-repository=/m", "--grpc-address=8001"}, "'8001' is not HOST:PORT"},
      {{"--model-repository=/m", "--grpc-address=host:65536"}, "'host:65536' is not HOST:PORT"},
      {{"--model-repository=/m", "--metrics-address=host:-1"}, "'host:-1' is not HOST:PORT"},
      {{"--model-repository=/m", "--metrics-address=:8002"}, "':8002' is not HOST:PORT"},
      {{"--model-repository=/m", "--metrics-address=host:80x"}, "'host:80x' is not HOST:PORT"},
      {{"--model-repository=/m", "--device=tpu"}, "tpu"},
      {{"--model-repository=/m", "--threads=-1"}, "--threads"},
      {{"--model-repository=/m", "--threads=many"}, "--threads"},
      {{"--model-repository=/m", "--pin-threads=some"}, "some not in {auto,off,on}"},
      {{"--model-repository=/m", "--tune=later"}, "later not in {background,before-ready,off}"},
      {{"--model-repository=/m", "--ready=a,,b"}, "--ready"},
      {{"--model-repository=/m", "--ready=a b"}, "--ready: no model is called 'a b': model names consist of"},
      {{"--model-repository=/m", "--drain-delay=-1"}, "--drain-delay"},
      {{"--model-repository=/m", "--tuning-budget=3601"}, "--tuning-budget"},
      {{"--model-repository=/m", "--weight-budget=0.5"}, "--weight-budget"},
      {{"--model-repository=/m", "--max-message-bytes=1"}, "--max-message-bytes"},
      {{"--model-repository=/m", "--log-format=xml"}, "xml not in {json,text}"},
      {{"--model-repository=/m", "--log-level=loud"}, "loud not in {debug,error,info,warning}"},
      {{"--model-repository=/m", "--metrics-compat=tensorflow"}, "tensorflow"},
      {{"--model-repository=/m", "--request-log-rate=2"}, "--request-log-rate"},
      {{"--model-repository=/m", "--trace-endpoint=https://c:1"}, "'https://c:1' is not http://HOST:PORT"},
      {{"--model-repository=/m", "--trace-endpoint=http://c:0"}, "'http://c:0' is not http://HOST:PORT"},
      {{"--model-repository=/m", "--trace-rate=0.1"}, "--trace-endpoint"},
      {{"--model-repository=/m", "stray"}, "stray"},
  };
  for (const auto& test : cases) {
    const CommandLine line = Parse(test.flags);
    EXPECT_EQ(line.exit_code, 2) << test.named;
    EXPECT_THAT(line.text, HasSubstr(test.named));
    EXPECT_THAT(line.text, ::testing::StartsWith("swizzle-server: "));
    EXPECT_EQ(line.text.find('\n'), line.text.size() - 1) << line.text;
  }
}

TEST(ParseCommandLine, HelpAndVersionLeaveWithZero) {
  const CommandLine help = Parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.text, HasSubstr("--model-repository"));
  const CommandLine version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.text, ::testing::MatchesRegex("swizzle-server [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(ParseCommandLine, ListingKernelsNeedsNoRepository) {
  const CommandLine line = Parse({"--list-kernels"});
  EXPECT_FALSE(line.exit_code) << line.text;
  EXPECT_TRUE(line.options.list_kernels);
}

}  // namespace
}  // namespace swizzle
