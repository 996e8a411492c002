// bench, and what it prints.
#include <fstream>
#include <iterator>

#include "client/cli/bench_report.h"
#include "client/cli/range.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli_fixture.h"

namespace swizzle::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using BenchCommandTest = CliTest;

TEST_F(BenchCommandTest, Benches) {
  const nlohmann::json json = RunJson({"bench", "echo", "--requests=20", "--concurrency=2", "--batch=4", "--warmup=3"});
  EXPECT_EQ(server_.infer_calls, 23);
  EXPECT_EQ(json["requests"], 20);
  EXPECT_EQ(json["batch"], 4);
  EXPECT_EQ(json["server_compute_ms"]["p99"], 0.007);
  EXPECT_GT(json["rows_per_second"], json["requests_per_second"]);
  EXPECT_THAT(Run({"bench", "echo", "--requests=2"}).out, HasSubstr("echo: 2 requests of batch 1, 1 in flight"));
  EXPECT_EQ(Run({"bench", "nobody", "--requests=2"}).code, kExitRefused);
}

TEST_F(BenchCommandTest, MeasuresLevelAfterLevel) {
  const std::string csv = (directory_ / "bench.csv").string();
  const Outcome table =
      Run({"bench", "echo", "--concurrency-range=1:5:2", "--requests=8", "--warmup=0", "--percentile=75", "-f", csv});
  EXPECT_EQ(table.code, kExitOk) << table.err;
  EXPECT_EQ(server_.infer_calls, 24);
  EXPECT_THAT(table.out, AllOf(HasSubstr("echo, batch 1\n"), HasSubstr("p75 ms"), HasSubstr("\n           3 ")));
  std::ifstream file(csv);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(
      text.substr(0, text.find('\n')),
      "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,Server "
      "Compute Infer,Server Compute Output,Client Recv,p50 latency,p75 latency,p90 latency,p95 latency,p99 latency");
  EXPECT_EQ(std::ranges::count(text, '\n'), 4);

  const nlohmann::json json = RunJson({"bench", "echo", "--concurrency-range=2:3", "--requests=8"});
  ASSERT_EQ(json["levels"].size(), 2u);
  EXPECT_EQ(json["levels"][1]["concurrency"], 3);
  EXPECT_EQ(json["levels"][1]["server"]["requests"], 8);
  EXPECT_EQ(json["inputs"][0]["shape"], nlohmann::json({1, 3}));
}

TEST_F(BenchCommandTest, SendsAtARate) {
  const nlohmann::json json =
      RunJson({"bench", "echo", "--request-rate-range=2000", "--requests=30", "--request-distribution=poisson"});
  EXPECT_EQ(json["request_rate"], 2000);
  EXPECT_EQ(json["requests"], 30);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_TRUE(json.contains("late"));
  EXPECT_THAT(Run({"bench", "echo", "--request-rate-range=2000", "--requests=3"}).out,
              HasSubstr("echo: 3 requests of batch 1, 2000 requests a second"));
}

TEST_F(BenchCommandTest, MeasuresInWindows) {
  const nlohmann::json json = RunJson({"bench", "echo", "-p", "20", "-r", "3", "-s", "1000"});
  EXPECT_EQ(json["windows"], 3);
  EXPECT_TRUE(json.contains("stable"));
}

TEST_F(BenchCommandTest, RefusesWhatExcludesEachOther) {
  const auto refused = [&](std::vector<std::string> flags, const char* why) {
    flags.insert(flags.begin(), {"bench", "echo"});
    const Outcome outcome = Run(flags);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused({"--concurrency-range=1:2", "--request-rate-range=5"}, "exclude each other");
  refused({"--concurrency-range=1:2", "--concurrency=2"}, "of a range, it is its start");
  refused({"--duration=1", "-p", "5"}, "--measurement-interval excludes --requests and --duration");
  refused({"--requests=1", "-p", "5"}, "--measurement-interval excludes --requests and --duration");
  refused({"--shape=x:2", "--input=x=y.npy"}, "--shape and --input exclude each other");
  refused({"--shape=x:2"}, "whose dimension 1 cannot be 2");
  refused({"--shape=z:2"}, "model 'echo' has no such input");
  refused({"--csv=/no/such/folder/x.csv"}, "cannot write /no/such/folder/x.csv");
  EXPECT_EQ(server_.infer_calls, 0);
}

TEST(RangeTest, IsStartEndAndStep) {
  const auto parse = [](const char* text, bool whole = false) { return ParseRange("--range", text, 1, 100, whole); };
  EXPECT_THAT(*parse("4"), ElementsAre(4));
  EXPECT_THAT(*parse("4:6"), ElementsAre(4, 5, 6));
  EXPECT_THAT(*parse("1:8:3"), ElementsAre(1, 4, 7));
  EXPECT_EQ(parse("1:2:0.1")->size(), 11u);
  for (const char* wrong : {"", "x", "1:2:3:4", "1:", "0", "1:101", "5:4", "1:9:0", "1:9:-1", "nan", "1:inf"}) {
    EXPECT_EQ(ExitCodeOf(parse(wrong).status()), kExitUsage) << wrong;
    EXPECT_THAT(std::string(parse(wrong).status().message()), HasSubstr("--range")) << wrong;
  }
  EXPECT_EQ(ExitCodeOf(parse("1:2:0.5", /*whole=*/true).status()), kExitUsage);
  EXPECT_EQ(ExitCodeOf(ParseRange("--range", "1:100:0.01", 1, 100, false).status()), kExitUsage);
}

BenchLevel Measured(double level, int requests) {
  BenchLevel measured;
  measured.level = level;
  measured.report.succeeded = requests;
  measured.report.elapsed = absl::Seconds(2);
  measured.report.sending = absl::Microseconds(40) * requests;
  for (int i = 1; i <= requests; ++i) measured.report.latencies.push_back(absl::Milliseconds(i));
  return measured;
}

TEST(BenchCsvTest, IsSortedByRateAndAddsUp) {
  BenchLevel slow = Measured(8, 3), fast = Measured(1, 100);
  ModelStatistics server;
  server.queue = {3, absl::Microseconds(900)};
  server.input = {3, absl::Microseconds(30)};
  server.compute = {3, absl::Microseconds(3000)};
  server.output = {3, absl::Microseconds(60)};
  slow.server = server;
  BenchSettings settings;
  settings.rows = 2;
  const std::string csv = BenchCsv(settings, {fast, slow});
  // Of 2000 us, on average, 40 went to sending, 300 + 10 + 1000 + 20 to the server, and the rest to what lies between.
  EXPECT_THAT(csv, HasSubstr("\n8,3,40,630,300,10,1000,20,0,2000,3000,3000,3000\n1,100,40,50460,0,"));
  fast.is_rate = slow.is_rate = true;
  EXPECT_THAT(BenchCsv(settings, {fast, slow}), ::testing::StartsWith("Request Rate,Inferences/Second,"));
}

TEST(BenchTableTest, SaysWhatIsWrongWithFigures) {
  BenchLevel level = Measured(4, 10);
  EXPECT_THAT(TableRow({}, level), Not(HasSubstr(";")));
  level.report.failed = 2;
  level.report.first_error = absl::ResourceExhaustedError("the queue is full");
  level.report.late = 3;
  level.stable = false;
  level.windows = 7;
  EXPECT_THAT(TableRow({}, level), HasSubstr("2 failed: the queue is full; 3 were sent over 1 ms after they were due; "
                                             "not stable after 7 windows\n"));
}

}  // namespace
}  // namespace swizzle::client
