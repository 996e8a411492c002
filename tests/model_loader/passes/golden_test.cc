// What each pass makes of a graph: one file a case in golden/, with the graph before and after as text (graph/print.h).
//
//   # What the case shows.
//   pass: fold_pad
//   opset: 17
//   applies: 1
//
//   before:
//   input %x: FP32[N,2,4,4]
//   ...
//   after:
//   ...
//
// Where the pass refuses the graph, the error stands in place of the one after. With SWIZZLE_UPDATE=1 in the
// environment the files are written again: what git shows then is to be read as carefully as a change of code.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/graph/print.h"
#include "model_loader/graph/verify.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/sequences/recognise.h"
#include "tests/support/graph_text.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsOk;

const std::filesystem::path kFolder = SWIZZLE_SOURCE_DIR "/tests/model_loader/passes/golden";
constexpr char kSequences[] = "recognise_sequences";

struct GoldenCase {
  std::string about;  // lines, each with its #
  std::map<std::string, std::string> fields;
  std::string before, after;
};

GoldenCase ReadCase(const std::filesystem::path& file) {
  GoldenCase golden;
  std::ifstream in(file);
  std::string* section = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line == "before:" || line == "after:") {
      section = line == "before:" ? &golden.before : &golden.after;
    } else if (section != nullptr) {
      if (!line.empty()) *section += line + "\n";
    } else if (line.starts_with("#")) {
      golden.about += line + "\n";
    } else if (const size_t colon = line.find(": "); colon != std::string::npos) {
      golden.fields[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return golden;
}

std::string TextOf(const GoldenCase& golden) {
  std::string text = golden.about;
  for (const char* field : {"pass", "opset", "applies"}) text += Concat(field, ": ", golden.fields.at(field), "\n");
  return text + "\nbefore:\n" + golden.before + "\nafter:\n" + golden.after;
}

std::string Contents(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

StatusOr<int> Recognise(Graph& graph) {
  GraphSequences& sequences = graph.sequences.emplace();
  sequences.batch = graph.ShapeOf(graph.inputs[0])[0];
  sequences.length = graph.ShapeOf(graph.inputs[0])[1];
  SWIZZLE_ASSIGN_OR_RETURN(const auto counts, RecogniseSequences(graph));
  int sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

// Runs the pass of this name; fills in how often it applied, and the graph or the error.
Status RunCase(GoldenCase& golden) {
  const std::string& name = golden.fields["pass"];
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, testing::ParseGraph(golden.before, std::stoll(golden.fields["opset"])));
  SWIZZLE_RETURN_IF_ERROR(VerifyAnyShape(graph, FindSequenceOperator));
  const bool for_plan = Verify(graph).ok();  // else for the interpreter
  golden.before = Print(graph);
  const auto passes = Passes();
  const auto pass = std::find_if(passes.begin(), passes.end(), [&](const Pass& each) { return each.name == name; });
  if (pass == passes.end() && name != kSequences) return InvalidArgument("there is no pass '", name, "'");
  const auto applied = pass == passes.end() ? Recognise(graph) : pass->run(graph);
  golden.fields["applies"] = applied.ok() ? std::to_string(*applied) : "-";
  golden.after = applied.ok() ? Print(graph) : applied.status().ToString() + "\n";
  if (!applied.ok()) return {};
  return for_plan ? Verify(graph) : VerifyAnyShape(graph, FindSequenceOperator);
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, PassMakesWhatTheFileSays) {
  const std::filesystem::path file = kFolder / (GetParam() + ".txt");
  GoldenCase golden = ReadCase(file);
  EXPECT_FALSE(golden.about.empty()) << "a case says what it shows";
  EXPECT_TRUE(GetParam().starts_with(golden.fields["pass"])) << "a file is called after its pass";
  ASSERT_THAT(RunCase(golden), IsOk());
  if (std::getenv("SWIZZLE_UPDATE") != nullptr) {
    std::ofstream(file) << TextOf(golden);
  } else {
    EXPECT_EQ(Contents(file), TextOf(golden)) << "SWIZZLE_UPDATE=1 writes it again";
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, GoldenTest, ::testing::ValuesIn(CaseNames()),
                         [](const auto& name) { return name.param; });

TEST(GoldenTest, EveryPassHasACase) {
  std::set<std::string> passes;
  for (const std::string& name : CaseNames()) passes.insert(ReadCase(kFolder / (name + ".txt")).fields["pass"]);
  for (const Pass& pass : Passes()) EXPECT_TRUE(passes.contains(std::string(pass.name))) << pass.name;
  EXPECT_TRUE(passes.contains(kSequences));
}

}  // namespace
}  // namespace swizzle
