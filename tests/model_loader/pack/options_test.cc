#include "model_loader/pack/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/format/format_row.h"
#include "tests/support/reference_page.h"

namespace swizzle::pack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CommandLine Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "swizzle-pack");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

template <typename T>
T ParseAs(const std::vector<const char*>& arguments) {
  const CommandLine line = Parse(arguments);
  EXPECT_TRUE(line.command && std::holds_alternative<T>(*line.command)) << line.text;
  return line.command ? std::get<T>(*line.command) : T();
}

TEST(Options, InspectHasDefaultsAndFlags) {
  const auto plain = ParseAs<InspectCommand>({"inspect", "m.onnx"});
  EXPECT_EQ(plain.model, "m.onnx");
  EXPECT_FALSE(plain.json);
  EXPECT_EQ(plain.threads, 0);
  EXPECT_EQ(plain.max_batch, 64);
  EXPECT_TRUE(plain.page.empty());
  EXPECT_EQ(plain.tuning_budget, absl::Seconds(15));
  const auto full =
      ParseAs<InspectCommand>({"inspect", "m.swz", "-o", "json", "--threads=1", "--max-batch=8", "--tuning-budget=0.5",
                               "--weight-budget=2", "--tuning-cache=times", "--report=page.html"});
  EXPECT_TRUE(full.json);
  EXPECT_EQ(full.threads, 1);
  EXPECT_EQ(full.max_batch, 8);
  EXPECT_EQ(full.tuning_budget, absl::Milliseconds(500));
  EXPECT_EQ(full.weight_budget, 2.0);
  EXPECT_EQ(full.tuning_cache, "times");
  EXPECT_EQ(full.page, "page.html");
}

TEST(Options, AdviseHasTheMethodsOfPruneAndTheMeasurementsOfInspect) {
  const auto plain = ParseAs<AdviseCommand>({"advise", "m.onnx"});
  EXPECT_EQ(plain.sparsity, 0.9);
  EXPECT_FALSE(plain.method) << "so that it goes by the device";
  EXPECT_EQ(plain.tuning_budget, absl::Seconds(15));
  const auto full =
      ParseAs<AdviseCommand>({"advise", "m.onnx", "-o", "json", "--sparsity=0.8", "--method=block", "--vector=32",
                              "--skip=stem*", "--threads=1", "--max-batch=8", "--tuning-budget=2",
                              "--tuning-cache=times", "--report=a.html", "--precision=BF16"});
  EXPECT_TRUE(full.json);
  EXPECT_EQ(full.sparsity, 0.8);
  EXPECT_EQ(full.method, PruneMethod::kBlock);
  EXPECT_EQ(full.vector_rows, 32);
  EXPECT_THAT(full.skip, ElementsAre("stem*"));
  EXPECT_EQ(full.max_batch, 8);
  EXPECT_EQ(full.tuning_budget, absl::Seconds(2));
  EXPECT_EQ(full.tuning_cache, "times");
  EXPECT_EQ(full.page, "a.html");
  EXPECT_EQ(full.precision, Precision::kBFloat16);
}

TEST(Options, PackTakesEveryFormatOfSparseWeights) {
  size_t taken = 0;
  for (const FormatRow& row : FormatRows()) {
    const std::string format = Concat("--format=", row.traits.name);
    const bool takes = Parse({"pack", "m.onnx", "m.swz", format.c_str()}).command.has_value();
    EXPECT_EQ(takes, row.traits.sparse && row.traits.has_values) << row.traits.name;
    taken += takes ? 1 : 0;
  }
  EXPECT_GE(taken, 6u);
  EXPECT_EQ(ParseAs<PackCommand>({"pack", "m.onnx", "m.swz"}).format, "auto");
  EXPECT_THAT(Parse({"pack", "m.onnx", "m.swz", "--format=zip"}).text, HasSubstr("shfl-bw"));
}

TEST(Options, PruneTakesItsOutputEitherWayAndManyPatterns) {
  const auto flag = ParseAs<PruneCommand>({"prune", "m.onnx", "-O", "p.onnx", "--method=magnitude", "--sparsity=0.9",
                                           "--skip=stem*", "--skip=*classifier*"});
  EXPECT_EQ(flag.output, "p.onnx");
  EXPECT_EQ(flag.sparsity, 0.9);
  EXPECT_THAT(flag.skip, ElementsAre("stem*", "*classifier*"));
  const auto positional = ParseAs<PruneCommand>({"prune", "m.onnx", "p.swz", "--sparsity=1"});
  EXPECT_EQ(positional.model, "m.onnx");
  EXPECT_EQ(positional.output, "p.swz");
}

TEST(Options, PruneSaysWhatAPartIs) {
  for (const char* sparsity : {"--sparsity=90", "--sparsity=90%", "--sparsity=-0.1", "--sparsity=nan"}) {
    EXPECT_THAT(Parse({"prune", "m.onnx", "p.onnx", sparsity}).text, HasSubstr("is not from 0 to 1; of 90 % it is 0.9"))
        << sparsity;
  }
}

TEST(Options, PruneRefusesFlagsThatItsMethodDoesNotRead) {
  const auto prune = [](const std::vector<std::string>& flags) {
    std::vector<const char*> words = {"prune", "m.onnx", "p.onnx", "--sparsity=0.9"};
    for (const std::string& flag : flags) words.push_back(flag.c_str());
    return Parse(words).text;
  };
  EXPECT_THAT(prune({"--vector=64"}),
              HasSubstr("--vector: does nothing with --method=magnitude; it is for vector-wise, shfl-bw, block"));
  EXPECT_THAT(prune({"--vector=64", "--method=n-m"}), HasSubstr("--vector"));
  EXPECT_THAT(prune({"--pattern=1:4", "--method=shfl-bw"}),
              HasSubstr("--pattern: does nothing with --method=shfl-bw; it is for n-m"));
  for (const char* method : {"--method=vector-wise", "--method=shfl-bw", "--method=block"}) {
    EXPECT_EQ(prune({"--vector=32", method}), "") << method;
  }
}

TEST(Options, Quantize) {
  const auto quantize = ParseAs<QuantizeCommand>({"quantize", "m.onnx", "q.onnx", "--calibration=c.npz",
                                                  "--observer=mse", "--skip=a", "--skip=b*", "--threads=1"});
  EXPECT_EQ(quantize.output, "q.onnx");
  EXPECT_EQ(quantize.calibration, "c.npz");
  EXPECT_EQ(quantize.observer, ObserverKind::kMse);
  EXPECT_THAT(quantize.skip, ElementsAre("a", "b*"));
  EXPECT_EQ(quantize.threads, 1);
}

TEST(Options, PackValidateAndRun) {
  EXPECT_EQ(ParseAs<PackCommand>({"pack", "m.onnx", "m.swz"}).output, "m.swz");
  const auto validate = ParseAs<ValidateCommand>({"validate", "a.onnx", "b.swz", "--samples=3", "--tolerance=1e-3"});
  EXPECT_EQ(validate.reference, "a.onnx");
  EXPECT_EQ(validate.candidate, "b.swz");
  EXPECT_EQ(validate.samples, 3);
  EXPECT_EQ(validate.tolerance, 1e-3);
  const auto labelled =
      ParseAs<ValidateCommand>({"validate", "a.onnx", "b.swz", "--inputs=i.npz", "--labels=l.npy", "--max-drop=1.5"});
  EXPECT_EQ(labelled.inputs, "i.npz");
  EXPECT_EQ(labelled.labels, "l.npy");
  EXPECT_EQ(labelled.max_drop, 1.5);
  const auto run =
      ParseAs<RunCommand>({"run", "m.onnx", "--input", "a=1.npy", "--input", "b=2.npy", "--output-dir=out"});
  EXPECT_THAT(run.inputs, ElementsAre("a=1.npy", "b=2.npy"));
  EXPECT_EQ(run.output_folder, "out");
}

TEST(Options, HelpOfEveryCommandHasAnExample) {
  for (const char* command : {"inspect", "advise", "prune", "quantize", "pack", "validate", "run", "tokenize"}) {
    const CommandLine line = Parse({command, "--help"});
    EXPECT_FALSE(line.command);
    EXPECT_EQ(line.outcome, Outcome::kOk);
    EXPECT_THAT(line.text, HasSubstr(std::string("Example: swizzle-pack ") + command));
  }
  EXPECT_THAT(Parse({"--help"}).text, HasSubstr("Exit codes: 0 done"));
  EXPECT_THAT(Parse({"--version"}).text, StartsWith("swizzle-pack "));
}

// SWIZZLE_REWRITE_PAGES=1 build/dev/bin/pack_commands_test --gtest_filter='Options.ThePage*' writes it again.
TEST(Options, ThePageOfFlagsIsWhatHelpSays) {
  const auto help = [](const std::vector<std::string>& arguments) {
    std::vector<const char*> words;
    for (const std::string& argument : arguments) words.push_back(argument.c_str());
    return Parse(words).text;
  };
  if (!IsReadable(help({"--help"}))) GTEST_SKIP() << "this CLI11 lays help out otherwise";
  ExpectPage("model_loader/pack/FLAGS.md",
             CommandPage("swizzle-pack",
                         {"inspect", "advise", "prune", "quantize", "pack", "validate", "run", "tokenize"}, help));
}

TEST(Options, MistakesAreOneLine) {
  const std::vector<std::vector<const char*>> mistakes = {
      {},
      {"fly"},
      {"inspect"},
      {"inspect", "m.onnx", "--threads=-1"},
      {"inspect", "m.onnx", "--threads=two"},
      {"inspect", "m.onnx", "--max-batch=0"},
      {"inspect", "m.onnx", "-o", "xml"},
      {"inspect", "m.onnx", "--report", "m.onnx"},
      {"prune", "m.onnx", "p.onnx"},
      {"prune", "m.onnx", "--sparsity=0.5"},
      {"prune", "m.onnx", "p.onnx", "--sparsity=1.01"},
      {"prune", "m.onnx", "p.bin", "--sparsity=0.5"},
      {"prune", "m.onnx", "p.onnx", "--sparsity=0.5", "--method=magic"},
      {"prune", "m.onnx", "p.onnx", "--sparsity=0.5", "--method=n-m", "--pattern=4:2"},
      {"pack", "m.onnx", "m.onnx"},
      {"validate", "a.onnx"},
      {"validate", "a.onnx", "b.swz", "--samples=0"},
      {"validate", "a.onnx", "b.swz", "--tolerance=-1"},
      {"validate", "a.onnx", "b.swz", "--labels=l.npy"},
      {"validate", "a.onnx", "b.swz", "--max-drop=1"},
      {"validate", "a.onnx", "b.swz", "--inputs=i.npz", "--samples=3"},
      {"run", "m.onnx", "--output-dir=out"},
      {"run", "m.onnx", "--input", "a=1.npy"},
      {"pack", "m.onnx", "m.swz", "--surprise"},
  };
  for (const auto& arguments : mistakes) {
    const CommandLine line = Parse(arguments);
    SCOPED_TRACE(line.text);
    EXPECT_FALSE(line.command);
    EXPECT_EQ(line.outcome, Outcome::kBadInput);
    EXPECT_THAT(line.text, StartsWith("swizzle-pack: "));
    EXPECT_EQ(line.text.find('\n'), line.text.size() - 1);
    EXPECT_LT(line.text.size(), 200u);
  }
}

TEST(Options, NumbersBelowNoughtAreCalledThat) {
  EXPECT_EQ(Parse({"validate", "a.onnx", "b.swz", "--tolerance=-1"}).text,
            "swizzle-pack: --tolerance: -1 is less than 0 (see --help)\n");
  EXPECT_THAT(Parse({"validate", "a.onnx", "b.swz", "--tolerance=inf"}).text, HasSubstr("inf is not finite"));
  EXPECT_THAT(Parse({"inspect", "a.onnx", "--threads=1025"}).text, HasSubstr("1025 is no number from 0 to 1024"));
}

}  // namespace
}  // namespace swizzle::pack
