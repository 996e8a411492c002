#include "server/rest/tokens_json.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "model_loader/text/utf8.h"
#include "server/rest/element_json.h"

namespace swizzle {
namespace {

// Where characters begin in a text, and where it ends.
std::vector<size_t> BeginningsOf(std::string_view text) {
  std::vector<size_t> beginnings;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text::BeginsCharacter(text[at])) beginnings.push_back(at);
  }
  beginnings.push_back(text.size());
  return beginnings;
}

}  // namespace

Status WriteTokens(const text::Tokenizer& tokenizer, const text::Encoding& encoding, std::string_view text,
                   int64_t most, std::string& answer) {
  const std::vector<size_t> beginnings = BeginningsOf(text);
  const size_t last = beginnings.size() - 1;
  answer += '[';
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const text::Range its = encoding.offsets[i];
    const size_t begin = beginnings[std::min(its.begin, last)], end = beginnings[std::min(its.end, last)];
    const bool special = encoding.special[i];
    answer += Concat(i > 0 ? "," : "", R"({"id":)", encoding.ids[i], R"(,"text":)");
    SWIZZLE_RETURN_IF_ERROR(
        WriteJsonString(special ? tokenizer.Token(encoding.ids[i]) : text.substr(begin, end - begin), answer));
    answer += special ? R"(,"special":true,"start":null,"stop":null})"
                      : Concat(R"(,"special":false,"start":)", its.begin, R"(,"stop":)", its.end, "}");
    if (static_cast<int64_t>(answer.size()) > most) {
      return MakeError(StatusCode::kOutOfRange, "the answer has more than ", most,
                       " bytes; send fewer texts at a time");
    }
  }
  answer += ']';
  return absl::OkStatus();
}

}  // namespace swizzle
