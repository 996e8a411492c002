#include "model_loader/text/template.h"

#include <algorithm>

namespace swizzle::text {
namespace {

using Kind = TemplatePart::Kind;

void Shorten(std::vector<int32_t>& ids, int64_t most, bool from_left) {
  const int64_t spare = static_cast<int64_t>(ids.size()) - most;
  if (spare <= 0) return;
  const auto begin = from_left ? ids.begin() : ids.end() - spare;
  ids.erase(begin, begin + spare);
}

// How many ids each may keep: the shorter all of its if the longer can give way, else about a half each.
struct Shares {
  int64_t first, second;
};
Shares SharesOf(int64_t first, int64_t second, int64_t most) {
  const int64_t shorter = std::min(first, second), half = most / 2;
  const Shares shares = 2 * shorter <= most ? Shares{shorter, most - shorter} : Shares{half, most - half};
  return first <= second ? shares : Shares{shares.second, shares.first};
}

}  // namespace

int64_t Template::AddedTo(bool is_pair) const {
  int64_t count = 0;
  for (const TemplatePart& part : is_pair ? pair : single) count += static_cast<int64_t>(part.ids.size());
  return count;
}

Template BertTemplate(int32_t cls, int32_t sep) {
  return {.single = {{Kind::kSpecial, 0, {cls}}, {Kind::kFirst, 0}, {Kind::kSpecial, 0, {sep}}},
          .pair = {{Kind::kSpecial, 0, {cls}},
                   {Kind::kFirst, 0},
                   {Kind::kSpecial, 0, {sep}},
                   {Kind::kSecond, 1},
                   {Kind::kSpecial, 1, {sep}}}};
}

Template RobertaTemplate(int32_t cls, int32_t sep) {
  return {.single = {{Kind::kSpecial, 0, {cls}}, {Kind::kFirst, 0}, {Kind::kSpecial, 0, {sep}}},
          .pair = {{Kind::kSpecial, 0, {cls}},
                   {Kind::kFirst, 0},
                   {Kind::kSpecial, 0, {sep, sep}},
                   {Kind::kSecond, 0},
                   {Kind::kSpecial, 0, {sep}}}};
}

Status Truncate(const Truncation& truncation, int64_t most, std::vector<int32_t>& first, std::vector<int32_t>* second) {
  const auto count = [](const std::vector<int32_t>& ids) { return static_cast<int64_t>(ids.size()); };
  const int64_t all = count(first) + (second == nullptr ? 0 : count(*second));
  if (all <= most) return {};
  if (truncation.strategy == Truncation::Strategy::kLongestFirst) {
    const Shares shares = second == nullptr ? Shares{most, 0} : SharesOf(count(first), count(*second), most);
    Shorten(first, shares.first, truncation.from_left);
    if (second != nullptr) Shorten(*second, shares.second, truncation.from_left);
    return {};
  }
  const bool only_first = truncation.strategy == Truncation::Strategy::kOnlyFirst;
  std::vector<int32_t>* shortened = only_first ? &first : second;
  if (shortened == nullptr) {
    return InvalidArgument("the tokenizer truncates the second text only, and there is one text of ", all,
                           " tokens, of which ", most, " may be; send a shorter one");
  }
  const int64_t kept = count(*shortened) - (all - most);
  if (kept <= 0) {
    return InvalidArgument("the tokenizer truncates the ", only_first ? "first" : "second", " text only, which has ",
                           count(*shortened), " of ", all, " tokens, and ", most, " may be; send shorter texts");
  }
  Shorten(*shortened, kept, truncation.from_left);
  return {};
}

}  // namespace swizzle::text
