// Makes random graphs, runs each by the interpreter, in regions, in batches and on a device in the host's memory, and
// shrinks what differs.
//
//   random_graphs --seeds=FIRST-LAST [--seconds=N] [--keep=FOLDER]
//
// Writes every difference to stdout as a graph's text, and to FOLDER as an ONNX file; exits 1 if there is one. Progress
// is on stderr. It ends after so many seconds if it has not come to the last seed then.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "absl/time/clock.h"
#include "tests/conformance/random_graphs/random_graphs.h"

namespace swizzle::random_graphs {
namespace {

constexpr absl::Duration kToShrink = absl::Seconds(30);

struct Options {
  uint64_t first = 1, last = 1000;
  double seconds = 1e9;
  std::filesystem::path keep;
};

bool ParseOptions(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    if (name == "--seeds") {
      const size_t dash = value.find('-');
      options.first = std::strtoull(value.c_str(), nullptr, 10);
      options.last = dash == std::string::npos ? options.first : std::strtoull(value.c_str() + dash + 1, nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "--keep") {
      options.keep = value;
    } else {
      return false;
    }
  }
  return true;
}

// The seed that was under way, for what ends the program while it draws.
char in_progress[64];

void SaySeed(int signal) {
  [[maybe_unused]] const auto written = write(2, in_progress, std::string_view(in_progress).size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Keep(const Finding& finding, const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::filesystem::create_directories(folder);
  const std::vector<std::byte> bytes = finding.shrunk.drawing.graph.Bytes();
  std::ofstream file(folder / Concat(finding.seed, ".onnx"), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::ofstream(folder / Concat(finding.seed, ".txt")) << finding.Text();
}

int Main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, options)) {
    std::cerr << "usage: random_graphs --seeds=FIRST-LAST [--seconds=N] [--keep=FOLDER]\n";
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, SaySeed);
  RandomGraphs graphs;
  const absl::Time begin = absl::Now();
  absl::Time said = begin;
  size_t found = 0;
  for (uint64_t seed = options.first; seed <= options.last; ++seed) {
    if (absl::Now() - begin > absl::Seconds(options.seconds)) break;
    std::snprintf(in_progress, sizeof(in_progress), "\nended by seed %llu\n", static_cast<unsigned long long>(seed));
    graphs.Try(seed, kToShrink);
    for (; found < graphs.findings().size(); ++found) {
      std::cout << graphs.findings()[found].Text() << std::endl;
      Keep(graphs.findings()[found], options.keep);
    }
    if (absl::Now() - said < absl::Seconds(10)) continue;
    said = absl::Now();
    std::cerr << "seed " << seed << ": " << found << " differ; " << graphs.counts().Text() << "\n";
  }
  std::cerr << found << " differ; " << graphs.counts().Text() << "\n";
  for (const auto& [op, count] : graphs.counts().operators) std::cerr << " " << op << ":" << count;
  std::cerr << "\n";
  return found == 0 ? 0 : 1;
}

}  // namespace
}  // namespace swizzle::random_graphs

int main(int argc, char** argv) { return swizzle::random_graphs::Main(argc, argv); }
