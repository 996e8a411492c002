#include "server/repository/readiness.h"

#include <algorithm>

#include "model_loader/files/printable_name.h"
#include "server/repository/model_directory.h"

namespace swizzle {

StatusOr<ReadyRule> ParseReadyRule(std::string_view text) {
  if (text == "all") return ReadyRule{};
  if (text == "any") return ReadyRule{ReadyRule::Who::kAny, {}};
  ReadyRule rule{ReadyRule::Who::kNamed, {}};
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma == 0) return InvalidArgument("it is neither all, any, nor names of models separated by commas");
    const std::string_view name = text.substr(0, comma);
    SWIZZLE_RETURN_IF_ERROR(Annotate(CheckModelName(name), Concat("no model is called ", QuotedName(name))));
    rule.names.emplace_back(name);
    if (comma == text.size()) return rule;
    text.remove_prefix(comma + 1);
  }
}

namespace {

// "model 'bert' failed: reason", "model 'bert' is loading", "version 3 of model 'bert' is loading".
std::string DescribeUnready(const ModelStatus& model, bool one_of_several) {
  const std::string who =
      Concat(one_of_several ? Concat("version ", model.version, " of ") : "", "model '", model.name, "'");
  if (model.state == ModelState::kLoading) return Concat(who, " is loading");
  return Concat(who, " failed: ", std::string(model.status.message()));
}

bool Serves(const ModelStatus& model) { return model.state == ModelState::kReady; }

// Nobody has asked for it, or no longer does.
bool IsUnwanted(const ModelStatus& model) {
  return model.state == ModelState::kUnloading || model.state == ModelState::kUnloaded;
}

// Of the models that a rule names.
void JudgeNamed(const ReadyRule& rule, std::span<const ModelStatus> models, Readiness& readiness) {
  readiness.ready = true;
  for (const std::string& name : rule.names) {
    const auto is_it = [&](const ModelStatus& model) { return model.name == name; };
    const bool serves = std::ranges::any_of(models, [&](const auto& model) { return is_it(model) && Serves(model); });
    readiness.ready = readiness.ready && serves;
    if (serves) continue;
    if (std::ranges::none_of(models, is_it)) {
      readiness.reasons.push_back(Concat("there is no model '", name, "'"));
    } else if (std::ranges::all_of(models, [&](const auto& model) { return !is_it(model) || IsUnwanted(model); })) {
      readiness.reasons.push_back(Concat("model '", name, "' is not loaded"));
    }
  }
}

}  // namespace

std::map<std::string, bool> ServingByName(std::span<const ModelStatus> models) {
  std::map<std::string, bool> serving;
  for (const ModelStatus& model : models) serving[model.name] |= Serves(model);
  return serving;
}

Readiness JudgeReadiness(const ReadyRule& rule, std::span<const ModelStatus> models) {
  Readiness readiness;
  for (const ModelStatus& model : models) {
    if (Serves(model) || IsUnwanted(model)) continue;
    readiness.reasons.push_back(DescribeUnready(model, std::ranges::count(models, model.name, &ModelStatus::name) > 1));
  }
  switch (rule.who) {
    case ReadyRule::Who::kAll:
      readiness.ready = std::ranges::all_of(
          models, [](const auto& model) { return Serves(model) || IsUnwanted(model) || !model.awaited; });
      break;
    case ReadyRule::Who::kAny:
      readiness.ready = std::ranges::any_of(models, Serves);
      if (models.empty()) readiness.reasons.emplace_back("there are no models");
      break;
    case ReadyRule::Who::kNamed:
      JudgeNamed(rule, models, readiness);
      break;
  }
  return readiness;
}

}  // namespace swizzle
