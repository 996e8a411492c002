#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/text/tokenizer.h"

namespace swizzle::pack {
namespace {

using nlohmann::ordered_json;

StatusOr<text::Encoding> Encode(const text::Tokenizer& tokenizer, const TokenizeCommand& command,
                                const std::string& given) {
  const text::EncodeOptions options = {.max_tokens = command.max_tokens, .offsets = command.offsets};
  return command.pair ? tokenizer.Encode(given, *command.pair, options) : tokenizer.Encode(given, options);
}

std::string EncodingText(const text::Tokenizer& tokenizer, const text::Encoding& encoding) {
  const bool typed =
      std::ranges::find_if(encoding.type_ids, [](int32_t type) { return type != 0; }) != encoding.type_ids.end();
  std::vector<TextTable::Column> columns = {{"id", Align::kRight}, {"token"}};
  if (typed) columns.push_back({"type", Align::kRight});
  if (!encoding.offsets.empty()) columns.push_back({"characters"});
  TextTable table(std::move(columns));
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    std::vector<std::string> cells = {std::to_string(encoding.ids[i]), QuotedName(tokenizer.Token(encoding.ids[i]))};
    if (typed) cells.push_back(std::to_string(encoding.type_ids[i]));
    if (!encoding.offsets.empty()) {
      const auto& [begin, end] = encoding.offsets[i];
      cells.push_back(begin < end ? Concat(begin, " to ", end - 1) : "");
    }
    table.AddRow(std::move(cells));
  }
  return Concat(table.Render(), encoding.ids.size(), encoding.ids.size() == 1 ? " token" : " tokens",
                encoding.truncated ? ", cut off\n" : "\n");
}

ordered_json EncodingJson(const text::Tokenizer& tokenizer, const TokenizeCommand& command, const std::string& given,
                          const text::Encoding& encoding) {
  ordered_json json = {{"text", given}};
  if (command.pair) json["pair"] = *command.pair;
  json["ids"] = encoding.ids;
  json["tokens"] = ordered_json::array();
  for (const int32_t id : encoding.ids) json["tokens"].push_back(tokenizer.Token(id));
  json["type_ids"] = encoding.type_ids;
  if (command.offsets) {
    json["offsets"] = ordered_json::array();
    for (const auto& [begin, end] : encoding.offsets) json["offsets"].push_back({begin, end});
  }
  json["truncated"] = encoding.truncated;
  return json;
}

// Text as it comes, so that whoever types lines sees each one's tokens; JSON as one array.
class Printer {
 public:
  Printer(const text::Tokenizer& tokenizer, const TokenizeCommand& command, Terminal& terminal)
      : tokenizer_(tokenizer), command_(command), terminal_(terminal) {}

  Status Print(const std::string& given) {
    const auto encoding = Encode(tokenizer_, command_, given);
    if (!encoding.ok()) return Annotate(encoding.status(), Concat("text ", count_));
    const bool begins = count_++ == 0;
    if (command_.json) {
      const ordered_json json = EncodingJson(tokenizer_, command_, given, *encoding);
      terminal_.out << (begins ? "[\n" : ",\n")
                    << json.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
    } else {
      terminal_.out << (begins ? "" : "\n") << EncodingText(tokenizer_, *encoding) << std::flush;
    }
    return {};
  }

  void End() {
    if (command_.json) terminal_.out << (count_ == 0 ? "[]\n" : "\n]\n");
  }

 private:
  const text::Tokenizer& tokenizer_;
  const TokenizeCommand& command_;
  Terminal& terminal_;
  int64_t count_ = 0;
};

}  // namespace

StatusOr<Outcome> Execute(const TokenizeCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::Open(command.path));
  Printer printer(tokenizer, command, terminal);
  for (const std::string& given : command.texts) SWIZZLE_RETURN_IF_ERROR(printer.Print(given));
  if (command.texts.empty() && terminal.in != nullptr) {
    for (std::string line; std::getline(*terminal.in, line);) SWIZZLE_RETURN_IF_ERROR(printer.Print(line));
  }
  printer.End();
  return Outcome::kOk;
}

}  // namespace swizzle::pack
