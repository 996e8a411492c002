// stats, config and watch.
#include "client/cli/watch_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli_fixture.h"

namespace swizzle::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using ObserveTest = CliTest;

TEST_F(ObserveTest, StatisticsAreToldAsTextAndAsJson) {
  EXPECT_THAT(Run({"stats"}).out, HasSubstr("echo, version 3\n  requests   0 answered, 1 failed\n"));
  server_.infer_calls = 4;
  EXPECT_THAT(Run({"stats", "echo"}).out,
              AllOf(HasSubstr("weights    2.5 MB on CPU\n"), HasSubstr("requests   4 answered, 1 failed, the last "),
                    HasSubstr("rows       8 in 4 batches, 2.00 a batch\n"),
                    HasSubstr("mean       1.000 ms a request: queue 1.000, input 0.000, compute 1.000, output 0.000\n"),
                    HasSubstr("batch of 2    4, compute 1.000 ms\n")));
  const nlohmann::json json = RunJson({"stats"});
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["rows"], 8);
  EXPECT_EQ(json[0]["queue"]["mean_ms"], 1);
  EXPECT_EQ(json[0]["last_inference"], 1.7e9);
  EXPECT_EQ(json[0]["batch_sizes"][0]["batches"], 4);
  EXPECT_FALSE(json[0].contains("since"));
  EXPECT_EQ(Run({"stats", "nobody"}).code, kExitRefused);
}

TEST_F(ObserveTest, ASecondLookGivesRates) {
  const nlohmann::json json = RunJson({"stats", "echo", "--interval=0.01"});
  EXPECT_EQ(json[0]["since"]["success"]["count"], 0);
  EXPECT_EQ(json[0]["since"]["requests_per_second"], 0);
  EXPECT_GE(json[0]["since"]["seconds"], 0.01);
  EXPECT_THAT(Run({"stats", "--interval=0.01"}).out, HasSubstr(" s: 0.0 requests/s"));
  EXPECT_EQ(Run({"stats", "--interval=0"}).code, kExitUsage);
}

TEST_F(ObserveTest, ConfigurationsAreToldAsTextAndAsJson) {
  EXPECT_EQ(Run({"config", "echo"}).out, "name: \"echo\"\nmax_batch_size: 8\ninput {\n  dims: 3\n}\n");
  EXPECT_EQ(RunJson({"config", "echo"})["max_batch_size"], 8);
  EXPECT_EQ(Run({"config", "nobody"}).err, "swizzle: model 'nobody' is not known\n");
  EXPECT_EQ(Run({"config"}).code, kExitUsage);
}

TEST_F(ObserveTest, WatchPrintsALineForEachLook) {
  const Outcome lines = Run({"watch", "--count=2", "--interval=0.01"});
  EXPECT_EQ(lines.code, kExitOk);
  EXPECT_EQ(std::ranges::count(lines.out, '\n'), 2);
  EXPECT_THAT(lines.out, AllOf(HasSubstr("broken UNAVAILABLE"), Not(HasSubstr("\033"))));
  const nlohmann::json json = RunJson({"watch", "--count=1", "--interval=0.01"});
  ASSERT_EQ(json["models"].size(), 2u);
  EXPECT_EQ(json["models"][0]["model"], "echo");
  EXPECT_EQ(json["models"][0]["failed"], 0);  // since the look before
  EXPECT_EQ(json["models"][1]["reason"], "the file ends early");
  server_.lists = false;
  EXPECT_EQ(RunJson({"watch", "--count=1", "--interval=0.01"})["models"].size(), 1u);
}

TEST_F(ObserveTest, WatchWaitsForAServerThatIsNotThere) {
  std::ostringstream out, err;
  const char* argv[] = {"swizzle", "watch", "--address=127.0.0.1:1", "--count=2", "--interval=0.01"};
  EXPECT_EQ(RunCli(5, argv, out, err, Watched()), kExitUnreachable);
  EXPECT_EQ(std::ranges::count(out.str(), '\n'), 2);
  EXPECT_THAT(out.str(), HasSubstr("no server answers at 127.0.0.1:1"));
}

TEST_F(ObserveTest, WatchEndsWhereItIsRefused) {
  server_.refuses = true;
  const Outcome refused = Run({"watch", "--interval=0.01"});  // and without a count it would go on
  EXPECT_EQ(refused.code, kExitRefused);
  EXPECT_EQ(refused.err, "swizzle: show a token\n");
}

TEST_F(ObserveTest, WatchDrawsOverItselfOnATerminal) {
  std::ostringstream out, err;
  const std::string address = "--address=" + server_.address();
  const char* argv[] = {"swizzle", "watch", address.c_str(), "--count=2", "--interval=0.01"};
  EXPECT_EQ(RunCli(5, argv, out, err, Watched{.out = true, .err = false}), kExitOk);
  const std::string drawn = out.str();
  EXPECT_THAT(drawn, ::testing::StartsWith("\r\033[Jmodel"));
  EXPECT_THAT(drawn, HasSubstr("\033[3A\r\033[J"));  // a head and two models
}

ModelStatistics Counted(const std::string& name, int64_t requests) {
  ModelStatistics model;
  model.name = name;
  model.version = "1";
  model.rows = 4 * requests;
  model.batches = requests;
  model.success = model.queue = model.compute = {requests, absl::Milliseconds(2) * requests};
  return model;
}

TEST(WatchTableTest, TellsWhatHappenedBetweenTwoLooks) {
  const std::vector<ListedModel> listed = {{"a", "1", "READY", ""}, {"b", "2", "READY", ""}};
  const auto models = WatchedModels(listed, {Counted("a", 10)}, {Counted("a", 30)});
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].between.success.count, 20);
  const std::string table = WatchTable(models, 2, {24, 200});
  EXPECT_THAT(table, HasSubstr("\na           10.0      2.000     2.000      2.000     4.0      0.0  READY\n"));
  EXPECT_THAT(table, HasSubstr("\nb:2          0.0          -         -          -       -      0.0  READY\n"));
  EXPECT_EQ(WatchLine(models, 2), "a 10.0/s 2.000 ms, queue 2.000 ms, batch 4.0, 0.0 failed/s");
  EXPECT_EQ(WatchJson(models, 2)[0]["requests_per_second"], 10);
}

TEST(WatchTableTest, FitsTheScreen) {
  std::vector<ListedModel> listed;
  for (int i = 0; i < 50; ++i) listed.push_back({"model\033[2J" + std::to_string(i), "1", "UNAVAILABLE", "why\n\t"});
  const std::string table = WatchTable(WatchedModels(listed, {}, {}), 1, {10, 60});
  EXPECT_EQ(std::ranges::count(table, '\n'), 9);
  EXPECT_THAT(table, AllOf(HasSubstr("and 43 more\n"), Not(HasSubstr("\033"))));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
}

}  // namespace
}  // namespace swizzle::client
