#include "tests/support/reference_page.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

namespace swizzle {
namespace {

std::string Code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

// As CLI11 2.3 writes a flag, where a newer one, which has " [0]" for "=0" and two spaces before a remark, wrote it.
std::string AsOlderCli11(const std::string& flag) {
  static const std::regex fallback(R"( \[([^ \]]+)\](?=$| ))"), spaces(" +");
  return std::regex_replace(std::regex_replace(flag, fallback, "=$1"), spaces, " ");
}

// "--threads N:INT in [0 - 1024]=0", and what it means, as a row.
std::string FlagRow(const std::string& flag, const std::string& meaning) {
  static const std::regex parts(
      R"((?:(-\w),)?(--[\w-]+|[A-Z]+))"                                                             // -o,--output
      R"((?: (?!REQUIRED)([A-Z]+(?:[:=][A-Z][\w.:,]*|\.[a-z]+|(?:\[,\w+=\w+\])+)?))?(?: \.\.\.)?)"  // HOST:PORT
      R"((?::[A-Z]+ in \[(.*) - (.*)\])?)"                                                          // its range
      R"((?:=([^A-Z ]+))?( REQUIRED)?(?: Excludes: (--[\w-]+))?(?: Needs: (--[\w-]+))?)");
  std::smatch match;
  const std::string written = AsOlderCli11(flag);
  EXPECT_TRUE(std::regex_match(written, match, parts)) << flag;
  const std::string letter = match[1].str(), name = match[2].str(), type = match[3].str();
  const bool is_help = name == "--help";
  std::string row =
      "| " + Code((letter.empty() || is_help ? "" : letter + ", ") + name + (type.empty() ? "" : " " + type));
  row += " | " + (match[7].matched ? "required" : Code(match[6].str())) + " | " + meaning;
  if (match[4].matched) row += " (" + match[4].str() + " to " + match[5].str() + ")";
  if (match[8].matched) row += " (not with " + Code(match[8].str()) + ")";
  if (match[9].matched) row += " (only with " + Code(match[9].str()) + ")";
  return row + " |\n";
}

// Whether the next line is what a flag means. Leaves it to be read.
bool MeaningFollows(std::istringstream& lines) {
  const std::streampos here = lines.tellg();
  std::string line;
  std::getline(lines, line);
  lines.clear();
  lines.seekg(here);
  return line.starts_with("   ");
}

// What a program or command is for: the first line of its help.
std::string Summary(const std::string& help) { return help.substr(0, help.find('\n')) + "\n\n"; }

// What stands below the flags and commands, as it is; else empty.
std::string Footer(const std::string& help) {
  const size_t last_entry = help.rfind("\n  ");
  const size_t begin = help.find_first_not_of('\n', help.find('\n', last_entry + 1));
  if (begin == std::string::npos) return "";
  return "\n```text\n" + help.substr(begin, help.find_last_not_of('\n') + 1 - begin) + "\n```\n";
}

}  // namespace

void ExpectPage(const std::string& path, const std::string& text) {
  const std::string file_path = std::string(SWIZZLE_SOURCE_DIR) + "/" + path;
  if (std::getenv("SWIZZLE_REWRITE_PAGES") != nullptr) {
    std::ofstream(file_path) << text;
    return;
  }
  std::ifstream file(file_path);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(page, text) << "run this test with SWIZZLE_REWRITE_PAGES=1 in the environment";
}

bool IsReadable(const std::string& help) { return help.find("  -h,--help ") != std::string::npos; }

std::string FlagTable(const std::string& help) {
  // Meanings stand in one column, on the flag's line or, where that is too long, on the next.
  const size_t help_flag = help.find("  -h,--help ");
  EXPECT_NE(help_flag, std::string::npos) << help;
  const size_t column = help.find("Print this", help_flag) - help_flag;
  std::string table = "| flag | default | meaning |\n|---|---|---|\n", flag;
  std::istringstream lines(help.substr(0, help.find("\nSubcommands:")));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    const bool is_alone = MeaningFollows(lines);
    if (line[2] != ' ') flag = line.substr(2, is_alone ? std::string::npos : column - 2);
    if (is_alone) continue;
    flag.erase(flag.find_last_not_of(' ') + 1);
    table += FlagRow(flag, line.substr(column));
  }
  return table;
}

std::string FlagsPage(const std::string& program, const std::string& help) {
  return "# Flags of " + program + "\n\n" + Summary(help) + "`" + program +
         " --help` prints the same; a test holds this page.\n\n" + FlagTable(help) + Footer(help);
}

std::string CommandPage(const std::string& tool, const std::vector<std::string>& commands,
                        const std::function<std::string(const std::vector<std::string>& arguments)>& help) {
  const std::string all = help({"--help"}), footer = Footer(all);
  std::string page = "# Flags of " + tool + "\n\n" + Summary(all) + "`" + tool +
                     " COMMAND --help` prints the same; a test holds this page.\n\nFor all commands:\n\n" +
                     FlagTable(all) + footer;
  for (const std::string& command : commands) {
    const std::string text = help({command, "--help"});
    page += "\n## " + tool + " ";
    page += command + "\n\n" + Summary(text) + FlagTable(text);
    if (Footer(text) != footer) page += Footer(text);
  }
  return page;
}

}  // namespace swizzle
