// What a model's metadata says of its inputs, as shapes and values that it takes.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/input.h"

namespace swizzle::client {
namespace {

// A number among the metadata's properties; 0 where it is missing.
int64_t Property(const ModelMetadata& metadata, const std::string& key) {
  const auto found = metadata.properties.find(key);
  int64_t value = 0;
  return found != metadata.properties.end() && absl::SimpleAtoi(found->second, &value) ? value : 0;
}

bool IsInteger(const std::string& datatype) {
  return absl::StartsWith(datatype, "INT") || absl::StartsWith(datatype, "UINT");
}

// What the server tells of the input; where it tells nothing, masks are known by their names, for drawn ones would
// leave out half of the tokens.
void ChooseValues(const ModelMetadata& metadata, InputPlan& plan) {
  plan.ids = Property(metadata, absl::StrCat("swizzle_ids.", plan.name));
  const bool named_mask = absl::StrContains(absl::AsciiStrToLower(plan.name), "mask") &&
                          (IsInteger(plan.datatype) || plan.datatype == "BOOL");
  if (plan.ids > 0) {
    plan.values = InputPlan::Values::kIds;
  } else if (Property(metadata, absl::StrCat("swizzle_mask.", plan.name)) > 0 || named_mask) {
    plan.values = InputPlan::Values::kOnes;
  }
}

bool TakesTokens(const ModelMetadata& metadata, const InputPlan& plan) {
  return plan.shape.size() == 2 && Property(metadata, "swizzle_max_length") > 0;
}

bool HasFreeBatch(const Shape& shape) { return !shape.empty() && shape[0] == -1; }

absl::Status Misfit(const TensorMetadata& input, const std::string& problem) {
  return UsageError(absl::StrCat("input '", input.name, "' has the shape ", ShapeText(input.shape), ", ", problem));
}

// `given` has all dimensions, or all but the batch.
absl::StatusOr<Shape> GivenShape(const TensorMetadata& input, Shape given, int64_t batch) {
  const bool without_batch = HasFreeBatch(input.shape) && given.size() + 1 == input.shape.size();
  if (without_batch) given.insert(given.begin(), batch);
  if (given.size() != input.shape.size()) {
    return Misfit(input, absl::StrCat("which --shape ", input.name, ":", ShapeText(given), " does not fit"));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (input.shape[i] == -1 || input.shape[i] == given[i]) continue;
    return Misfit(input, absl::StrCat("whose dimension ", i, " cannot be ", given[i]));
  }
  if (!without_batch && batch != 1 && !given.empty() && given[0] != batch) {
    return Misfit(input, absl::StrCat("of which --shape says ", given[0], " rows, and --batch ", batch));
  }
  return given;
}

// Tokens of a sequence: as many as in a shape that was given for another input of theirs, for all have the same.
int64_t TokensOf(const ModelMetadata& metadata, const PlanOptions& options) {
  for (const TensorMetadata& input : metadata.inputs) {
    const auto given = options.shapes.find(input.name);
    if (input.shape.size() == 2 && given != options.shapes.end()) return given->second.back();
  }
  return std::min(options.tokens, Property(metadata, "swizzle_max_length"));
}

absl::StatusOr<Shape> ChosenShape(const ModelMetadata& metadata, const TensorMetadata& input, const InputPlan& plan,
                                  const PlanOptions& options) {
  const auto given = options.shapes.find(input.name);
  if (given != options.shapes.end()) return GivenShape(input, given->second, options.batch);
  Shape shape = input.shape;
  if (HasFreeBatch(shape)) {
    shape[0] = options.batch;
  } else if (options.batch != 1) {
    return UsageError(absl::StrCat("input '", input.name, "' has the fixed shape ", ShapeText(input.shape),
                                   ", so --batch must be 1"));
  }
  for (int64_t& dimension : shape) {
    if (dimension >= 0) continue;
    const bool is_text = plan.values == InputPlan::Values::kTexts;  // one a row
    dimension = is_text ? 1 : TakesTokens(metadata, plan) ? TokensOf(metadata, options) : options.free;
    if (dimension > 0) continue;
    return Misfit(input,
                  absl::StrCat("of which a dimension is free; give --shape ", input.name, ":",
                               input.shape.size() > 2 ? "D1,D2,..." : "D1", ", or --input ", input.name, "=FILE.npy"));
  }
  return shape;
}

}  // namespace

absl::StatusOr<std::map<std::string, Shape>> ParseShapes(const std::vector<std::string>& arguments) {
  std::map<std::string, Shape> shapes;
  for (const std::string& argument : arguments) {
    const size_t colon = argument.rfind(':');  // names may have some
    Shape shape;
    bool good = colon != std::string::npos && colon > 0;
    if (good) {
      for (const auto& word : absl::StrSplit(argument.substr(colon + 1), ',')) {
        int64_t dimension = 0;
        good = good && absl::SimpleAtoi(word, &dimension) && dimension > 0;
        shape.push_back(dimension);
      }
    }
    if (!good) {
      return UsageError(absl::StrCat("--shape ", argument, " is not of the form NAME:D1,D2, of numbers from 1 on"));
    }
    if (!shapes.emplace(argument.substr(0, colon), shape).second) {
      return UsageError(absl::StrCat("--shape is given twice for ", argument.substr(0, colon)));
    }
  }
  return shapes;
}

absl::StatusOr<std::vector<InputPlan>> PlanInputs(const ModelMetadata& metadata, const PlanOptions& options,
                                                  bool strings) {
  for (const auto& [name, shape] : options.shapes) {
    if (std::ranges::find(metadata.inputs, name, &TensorMetadata::name) != metadata.inputs.end()) continue;
    return UsageError(absl::StrCat("--shape ", name, ": model '", metadata.name, "' has no such input"));
  }
  std::vector<InputPlan> plans;
  for (const TensorMetadata& input : metadata.inputs) {
    InputPlan plan{input.name, input.datatype, input.shape};
    const bool is_text = input.datatype == "BYTES" && metadata.properties.contains("swizzle_text");
    if (is_text && !strings) {
      // The server adds two tokens of its own, or so.
      plan.values = InputPlan::Values::kTexts;
      const int64_t most = Property(metadata, "swizzle_max_tokens");
      plan.words = std::max<int64_t>(1, (most > 0 ? std::min(options.tokens, most) : options.tokens) - 2);
    } else if (DatatypeBytes(input.datatype) == 0 && !(strings && input.datatype == "BYTES")) {
      return UsageError(absl::StrCat("can't draw input '", input.name, "' of datatype ", input.datatype,
                                     "; give --input ", input.name, "=FILE.npy"));
    }
    if (!is_text) ChooseValues(metadata, plan);
    absl::StatusOr<Shape> shape = ChosenShape(metadata, input, plan, options);
    if (!shape.ok()) return shape.status();
    plan.shape = *std::move(shape);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace swizzle::client
