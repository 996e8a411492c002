#include "model_loader/regions/declared_outputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "model_loader/regions/survey.h"

namespace swizzle::regions {
namespace {

bool IsDeclared(const interpreter::Port& port) { return port.dtype && port.shape; }

Shape DeclaredShape(const Survey& survey, size_t value) {
  Shape shape = *survey.shapes[value];
  const std::optional<Shape>& other = survey.other_shapes[value];
  const bool known = survey.shapes_follow && other && other->size() == shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!known || shape[d] != (*other)[d]) shape[d] = -1;
  }
  return shape;
}

}  // namespace

StatusOr<std::shared_ptr<const interpreter::Program>> WithDeclaredOutputs(
    std::shared_ptr<const interpreter::Program> program, Backend& host, int threads,
    const interpreter::Limits& limits) {
  std::vector<interpreter::Port> outputs = program->outputs();
  if (std::ranges::all_of(outputs, IsDeclared)) return program;
  const auto stream = host.NewStream(threads);
  if (!stream.ok()) return program;
  const StatusOr<Survey> survey = SurveyProgram(*program, **stream, limits);
  if (survey.status().code() == StatusCode::kFailedPrecondition) return survey.status();
  if (!survey.ok()) return program;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto value = static_cast<size_t>(program->graph().outputs[i].value);
    if (!outputs[i].dtype) outputs[i].dtype = survey->dtypes[value];
    if (!outputs[i].shape) outputs[i].shape = DeclaredShape(*survey, value);
  }
  return program->WithOutputs(std::move(outputs));
}

}  // namespace swizzle::regions
