#include "client/cli/cli.h"

#include <sstream>
#include <vector>

#include "client/cli/ranking.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli_fixture.h"
#include "tests/support/reference_page.h"

namespace swizzle::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CliTest, NumbersThatCannotBeAreCalledThat) {
  for (const char* flag : {"--requests=0", "--duration=-1", "--batch=0"}) {
    const Outcome outcome = Run({"bench", "echo", flag});
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err, HasSubstr(" is not more than 0"));
    EXPECT_LT(outcome.err.size(), 120u);
  }
  EXPECT_EQ(Run({"infer", "echo", "--top=0"}).code, kExitUsage);
  EXPECT_THAT(Run({"bench", "echo", "--duration=inf"}).err, HasSubstr("inf is not finite"));
}

TEST_F(CliTest, ModelsAreListed) {
  EXPECT_EQ(Run({"models"}).out, "echo    3  READY\nbroken  -  UNAVAILABLE  the file ends early\n");
  const nlohmann::json models = RunJson({"models"});
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0]["version"], "3");
  EXPECT_EQ(models[1]["reason"], "the file ends early");
}

TEST_F(CliTest, ModelsAreLoadedAndUnloaded) {
  EXPECT_EQ(Run({"load", "echo"}).out, "model 'echo' is loaded\n");
  EXPECT_EQ(RunJson({"load", "echo"})["loaded"], true);
  EXPECT_EQ(RunJson({"unload", "echo"})["unloaded"], true);
  EXPECT_EQ(Run({"unload", "echo"}).out, "model 'echo' is unloaded\n");
  EXPECT_EQ(Run({"load", "broken"}).code, kExitRefused);
  EXPECT_THAT(Run({"load", "broken"}).err, HasSubstr("model 'broken' failed to load"));
  EXPECT_EQ(Run({"unload", "nobody"}).code, kExitRefused);
  EXPECT_THAT(Run({"load", "secret"}).err, HasSubstr("not here; name that with --address"));
}

TEST_F(CliTest, HealthAnswersByExitCode) {
  EXPECT_EQ(Run({"health"}).code, kExitOk);
  EXPECT_EQ(Run({"health", "echo", "--wait=5"}).code, kExitOk);
  const Outcome unknown = Run({"health", "nobody"});
  EXPECT_EQ(unknown.code, kExitRefused);
  EXPECT_EQ(unknown.err, "swizzle: model 'nobody' is not known\n");
  server_.ready = false;
  EXPECT_EQ(Run({"health"}).code, kExitRefused);
  EXPECT_THAT(Run({"health", "echo"}).err, HasSubstr("model 'echo' is not ready"));
}

TEST_F(CliTest, HealthNamesWhatIsNotReadyAndWhy) {
  EXPECT_EQ(Run({"health"}).out, "the server is ready\n  model 'broken' is UNAVAILABLE: the file ends early\n");
  EXPECT_EQ(Run({"health", "echo"}).out, "model 'echo' is ready\n");
  EXPECT_EQ(RunJson({"health"})["unready"][0]["reason"], "the file ends early");
  server_.ready = false;
  EXPECT_EQ(Run({"health"}).err,
            "swizzle: the server is not ready; model 'echo' is LOADING; model 'broken' is UNAVAILABLE: the file ends "
            "early\n");
  EXPECT_EQ(Run({"health", "echo"}).err, "swizzle: model 'echo' is not ready; model 'echo' is LOADING\n");
  EXPECT_THAT(Run({"health", "--wait=0.3"}).err, HasSubstr("not ready after 300ms; model 'echo' is LOADING"));
  server_.lists = false;
  EXPECT_EQ(Run({"health"}).err, "swizzle: the server is not ready\n");
}

// On a terminal alone.
TEST_F(CliTest, WhoWaitsIsToldForHowLong) {
  server_.ready = false;
  std::ostringstream out, err;
  const std::string address = "--address=" + server_.address();
  const char* argv[] = {"swizzle", "health", "echo", "--wait=0.5", address.c_str()};
  EXPECT_EQ(RunCli(5, argv, out, err, {.out = false, .err = true}), kExitRefused);
  EXPECT_THAT(err.str(), HasSubstr("\r\033[K  waiting for model 'echo', 0 s"));
  EXPECT_THAT(Run({"health", "echo", "--wait=0.3"}).err, ::testing::Not(HasSubstr("waiting")));
}

TEST_F(CliTest, UnreachableHasItsOwnExitCode) {
  const Outcome outcome = Run({"--address=127.0.0.1:1", "health"});
  EXPECT_EQ(outcome.code, kExitUsage);  // --address is given twice
  std::ostringstream out, err;
  const char* argv[] = {"swizzle", "health", "--address=127.0.0.1:1"};
  EXPECT_EQ(RunCli(3, argv, out, err, Watched()), kExitUnreachable);
  EXPECT_THAT(err.str(), HasSubstr("no server answers at 127.0.0.1:1"));
}

TEST_F(CliTest, BadCommandLinesAreUsageErrors) {
  EXPECT_EQ(Run({}).code, kExitUsage);
  EXPECT_EQ(Run({"fly"}).code, kExitUsage);
  EXPECT_EQ(Run({"bench", "echo", "--concurrency=0"}).code, kExitUsage);
  EXPECT_EQ(Run({"bench", "echo", "--requests=1", "--duration=1"}).code, kExitUsage);
  EXPECT_EQ(Run({"infer", "echo", "--input", "x"}).code, kExitUsage);
  const Outcome missing = Run({"infer", "echo", "--input", "x=no/such.npy"});
  EXPECT_EQ(missing.code, kExitUsage);
  EXPECT_EQ(missing.err, "swizzle: there is no file no/such.npy\n");
  const Outcome help = Run({"--help"});
  EXPECT_EQ(help.code, kExitOk);
  EXPECT_THAT(help.out, HasSubstr("Exit codes:"));
}

TEST_F(CliTest, SaysItsVersion) {
  const Outcome outcome = Run({"--version"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, ::testing::MatchesRegex("swizzle [0-9.]+\n"));
}

// SWIZZLE_REWRITE_PAGES=1 build/dev/bin/client_test --gtest_filter='*ThePageOfFlags*' writes it again.
TEST(CliHelpTest, ThePageOfFlagsIsWhatHelpSays) {
  const auto help = [](const std::vector<std::string>& arguments) {
    std::vector<const char*> words = {"swizzle"};
    for (const std::string& argument : arguments) words.push_back(argument.c_str());
    std::ostringstream out, err;
    EXPECT_EQ(RunCli(static_cast<int>(words.size()), words.data(), out, err, Watched()), kExitOk);
    return out.str();
  };
  if (!IsReadable(help({"--help"}))) GTEST_SKIP() << "this CLI11 lays help out otherwise";
  ExpectPage("client/FLAGS.md", CommandPage("swizzle",
                                            {"serve", "health", "metadata", "models", "stats", "watch", "config",
                                             "load", "unload", "infer", "bench", "classify"},
                                            help));
}

TEST_F(CliTest, PrintsMetadata) {
  EXPECT_THAT(Run({"metadata"}).out, HasSubstr("fake 1.2"));
  EXPECT_THAT(Run({"metadata", "echo"}).out, AllOf(HasSubstr("x FP32 [-1,3]"), HasSubstr("sparsity: 0.9")));
  const nlohmann::json json = RunJson({"metadata", "echo"});
  EXPECT_EQ(json["outputs"][0]["name"], "y");
  EXPECT_EQ(json["properties"]["sparsity"], "0.9");
}

TEST_F(CliTest, Infers) {
  const std::string file = Save<float>("x.npy", "FP32", {2, 3}, {1, 5, 3, 9, 8, 7});
  const std::string input = "x=" + file;
  EXPECT_THAT(Run({"infer", "echo", "--input", input}).out, HasSubstr("y FP32 [2,3]: 1.0 5.0 3.0 9.0 8.0 7.0\n"));
  EXPECT_THAT(Run({"infer", "echo", "--input", input, "--top=2"}).out,
              AllOf(HasSubstr("row 0: 1 (5)  2 (3)\n"), HasSubstr("row 1: 0 (9)  1 (8)\n")));
  const nlohmann::json json = RunJson({"infer", "--input", input, "echo", "--top=1"});
  EXPECT_EQ(json["outputs"][0]["data"], (std::vector<float>{1, 5, 3, 9, 8, 7}));
  EXPECT_EQ(json["outputs"][0]["top"][1][0]["index"], 0);
  EXPECT_EQ(json["server_compute_ms"], 0.007);
}

TEST_F(CliTest, SavesOutputs) {
  const std::string file = Save<float>("x.npy", "FP32", {1, 3}, {1, 5, 3});
  const std::string directory = (directory_ / "out").string();
  ASSERT_EQ(Run({"infer", "echo", "--input", "x=" + file, "--output-dir", directory}).code, kExitOk);
  const auto saved = ReadNpy(directory + "/y.npy");
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_THAT(saved->Values<float>(), ElementsAre(1, 5, 3));
}

TEST_F(CliTest, Classifies) {
  const std::string images = Save<float>("images.npy", "FP32", {3, 3}, {0, 1, 0, 5, 1, 0, 0, 1, 7});
  const std::string labels = Save<uint8_t>("labels.npy", "UINT8", {3}, {1, 0, 0});
  const std::string predictions = (directory_ / "predictions.npy").string();
  const nlohmann::json json = RunJson({"classify", "echo", "--images", images, "--labels", labels, "--batch=2",
                                       "--concurrency=2", "--predictions", predictions});
  EXPECT_EQ(json["images"], 3);
  EXPECT_EQ(json["correct"], 2);
  const auto saved = ReadNpy(predictions);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_THAT(saved->Values<int64_t>(), ElementsAre(1, 0, 2));

  const std::string short_labels = Save<uint8_t>("short.npy", "UINT8", {2}, {1, 0});
  const Outcome mismatch = Run({"classify", "echo", "--images", images, "--labels", short_labels});
  EXPECT_EQ(mismatch.code, kExitUsage);
  EXPECT_THAT(mismatch.err, HasSubstr("3 images need [3]"));
}

TEST(RankingTest, PutsTheFirstOfEqualsFirst) {
  const float values[] = {1, 3, 3, 2};
  const auto best = Best(values, 9);
  std::vector<int64_t> order;
  for (const Ranked& ranked : best) order.push_back(ranked.index);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(Best(values, 0), IsEmpty());
  EXPECT_FALSE(BestOfRows(MakeTensor<float>("y", "FP32", {4, 0}, {}), 1).ok());
  EXPECT_FALSE(BestOfRows(Tensor{"y", "INT64", {0, 2}, ""}, 1).ok());
}

}  // namespace
}  // namespace swizzle::client
