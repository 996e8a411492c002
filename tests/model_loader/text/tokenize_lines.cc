// Prints the ids of texts, for tests/integration/tokenizers_test.py; or measures how long they take.
//
//   tokenize_lines PATH [MAX_TOKENS] [--plain] [--offsets] [--decode] [--time]
//
// PATH is what Tokenizer::Open takes. Each line of the standard input is a text in Base64, or two, with a blank
// between; each line of the output its ids and, behind a '|', their types, or "error: " and why there are none. --plain
// adds no special tokens. --offsets prints, behind another '|', where each token begins and ends, and behind a last one
// which are special. --decode prints, in Base64, the text of each line's ids with and without special tokens. --time
// prints how long all lines took, per token, in place of them.
#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "model_loader/text/charsmap.h"
#include "model_loader/text/tokenizer.h"

namespace swizzle::text {
namespace {

struct Line {
  std::string text;
  std::optional<std::string> pair;
};

StatusOr<std::vector<Line>> ReadLines(std::istream& in) {
  std::vector<Line> lines;
  for (std::string line; std::getline(in, line);) {
    const size_t blank = line.find(' ');
    SWIZZLE_ASSIGN_OR_RETURN(std::string text, DecodeBase64(std::string_view(line).substr(0, blank)));
    lines.push_back({std::move(text), std::nullopt});
    if (blank == std::string::npos) continue;
    SWIZZLE_ASSIGN_OR_RETURN(lines.back().pair, DecodeBase64(std::string_view(line).substr(blank + 1)));
  }
  return lines;
}

StatusOr<Encoding> Encode(const Tokenizer& tokenizer, const Line& line, const EncodeOptions& options) {
  return line.pair ? tokenizer.Encode(line.text, *line.pair, options) : tokenizer.Encode(line.text, options);
}

void Print(const std::vector<int32_t>& numbers, std::ostream& out) {
  for (size_t i = 0; i < numbers.size(); ++i) out << (i == 0 ? "" : " ") << numbers[i];
}

void PrintAll(const Tokenizer& tokenizer, const std::vector<Line>& lines, const EncodeOptions& options) {
  for (const Line& line : lines) {
    const StatusOr<Encoding> encoding = Encode(tokenizer, line, options);
    if (!encoding.ok()) {
      std::cout << "error: " << std::string(encoding.status().message()) << "\n";
      continue;
    }
    Print(encoding->ids, std::cout);
    std::cout << "|";
    Print(encoding->type_ids, std::cout);
    if (options.offsets) std::cout << "|";
    for (const Range its : encoding->offsets) std::cout << " " << its.begin << " " << its.end;
    if (options.offsets) std::cout << "|";
    for (const bool its : encoding->special) std::cout << " " << its;
    std::cout << "\n";
  }
}

void PrintDecoded(const Tokenizer& tokenizer, const std::vector<Line>& lines, const EncodeOptions& options) {
  for (const Line& line : lines) {
    const StatusOr<Encoding> encoding = Encode(tokenizer, line, options);
    for (const bool skips : {false, true}) {
      const StatusOr<std::string> text = encoding.ok() ? tokenizer.Decode(encoding->ids, skips) : encoding.status();
      std::cout << (skips ? " " : "") << absl::Base64Escape(text.ok() ? *text : std::string(text.status().message()));
    }
    std::cout << "\n";
  }
}

void Measure(const Tokenizer& tokenizer, const std::vector<Line>& lines, const EncodeOptions& options) {
  constexpr int kRuns = 5;
  double least = 0.0;
  size_t tokens = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    tokens = 0;
    for (const Line& line : lines) {
      const StatusOr<Encoding> encoding = Encode(tokenizer, line, options);
      if (encoding.ok()) tokens += encoding->ids.size();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    least = run == 0 ? seconds : std::min(least, seconds);
  }
  std::cout << lines.size() << " texts, " << tokens << " tokens, " << 1e9 * least / static_cast<double>(tokens)
            << " ns a token\n";
}

int Run(const std::vector<std::string>& arguments) {
  EncodeOptions options;
  bool measure = false, decode = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--plain") {
      options.add_special_tokens = false;
    } else if (arguments[i] == "--offsets") {
      options.offsets = true;
    } else if (arguments[i] == "--decode") {
      decode = true;
    } else if (arguments[i] == "--time") {
      measure = true;
    } else if (!absl::SimpleAtoi(arguments[i], &options.max_tokens)) {
      std::cerr << "tokenize_lines: '" << arguments[i] << "' is no number of tokens\n";
      return 2;
    }
  }
  const StatusOr<Tokenizer> tokenizer = Tokenizer::Open(arguments.empty() ? "" : arguments[0]);
  const StatusOr<std::vector<Line>> lines = ReadLines(std::cin);
  if (!tokenizer.ok() || !lines.ok()) {
    std::cerr << "tokenize_lines: " << (tokenizer.ok() ? lines.status() : tokenizer.status()).message() << "\n";
    return 2;
  }
  (measure ? Measure : decode ? PrintDecoded : PrintAll)(*tokenizer, *lines, options);
  return 0;
}

}  // namespace
}  // namespace swizzle::text

int main(int argc, char** argv) { return swizzle::text::Run(std::vector<std::string>(argv + 1, argv + argc)); }
