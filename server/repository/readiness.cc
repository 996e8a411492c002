#include "server/repository/readiness.h"

#include <algorithm>

namespace swizzle {

StatusOr<ReadyRule> ParseReadyRule(std::string_view text) {
  if (text == "all") return ReadyRule{};
  if (text == "any") return ReadyRule{ReadyRule::Who::kAny, {}};
  ReadyRule rule{ReadyRule::Who::kNamed, {}};
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma == 0) return InvalidArgument("it is neither all, any, nor names of models separated by commas");
    rule.names.emplace_back(text.substr(0, comma));
    if (comma == text.size()) return rule;
    text.remove_prefix(comma + 1);
  }
}

namespace {

// "model 'bert' failed: reason", "model 'bert' is loading".
std::string DescribeUnready(const ModelStatus& model) {
  if (model.state == ModelState::kLoading) return Concat("model '", model.name, "' is loading");
  return Concat("model '", model.name, "' failed: ", std::string(model.status.message()));
}

}  // namespace

Readiness JudgeReadiness(const ReadyRule& rule, std::span<const ModelStatus> models) {
  const auto serves = [](const ModelStatus& model) { return model.state == ModelState::kReady; };
  Readiness readiness;
  for (const ModelStatus& model : models) {
    if (!serves(model)) readiness.reasons.push_back(DescribeUnready(model));
  }
  switch (rule.who) {
    case ReadyRule::Who::kAll:
      readiness.ready = std::ranges::all_of(models, serves);
      break;
    case ReadyRule::Who::kAny:
      readiness.ready = std::ranges::any_of(models, serves);
      if (models.empty()) readiness.reasons.emplace_back("there are no models");
      break;
    case ReadyRule::Who::kNamed:
      readiness.ready = true;
      for (const std::string& name : rule.names) {
        const auto found = std::ranges::find(models, name, &ModelStatus::name);
        readiness.ready = readiness.ready && found != models.end() && serves(*found);
        if (found == models.end()) readiness.reasons.push_back(Concat("there is no model '", name, "'"));
      }
      break;
  }
  return readiness;
}

}  // namespace swizzle
