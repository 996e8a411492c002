#include "kernels/backend/backend.h"

#include <map>

#include "kernels/backend/select.h"

namespace swizzle {
namespace {

// A kernel's prepare converts: a dense one takes every format, a sparse one every sparse format that has values.
bool TakesFormat(const Kernel& kernel, Format format) {
  const Format own = kernel.key.weights;
  if (own == format || own == Format::kNone || format == Format::kNone) return own == format;
  return own == Format::kDense || (IsSparse(own) && HasValues(own) && IsSparse(format) && HasValues(format));
}

// Whether operands may be stored as the row has them: as the precision allows, or as the whole numbers that the model
// gives them scales for.
bool MayStoreOperands(Precision precision, const KernelKey& key, const Problem& problem) {
  const auto may_store = [=](Storage storage, DType quantised) {
    return MayStore(precision, storage) || (quantised != DType::kFloat32 && quantised == storage.dtype);
  };
  const int inputs = InputCount(problem);
  const std::optional<Quantised>& output = problem.epilogue.requantise;
  if (inputs == 0 && !MayStore(precision, key.input)) return false;
  for (int i = 0; i < inputs; ++i) {
    if (!may_store(key.input, problem.inputs_as[i].dtype)) return false;
  }
  if (problem.epilogue.residual && !may_store(key.output, problem.inputs_as[inputs].dtype)) return false;
  return may_store(key.output, output ? output->dtype : DType::kFloat32);
}

// What rows ask of one weight, each question once: the rows of a kernel have it in common.
class Questions {
 public:
  Questions(const Weight* weight, const Problem& problem) : weight_(weight), problem_(problem) {}

  bool Holds(const Kernel& kernel) {
    if (kernel.holds == nullptr) return true;
    const auto [answer, is_new] = answers_.try_emplace(kernel.holds);
    if (is_new) answer->second = kernel.holds(*weight_, problem_);
    return answer->second;
  }

 private:
  const Weight* const weight_;
  const Problem& problem_;
  std::map<bool (*)(const Weight&, const Problem&), bool> answers_;
};

// Without what a row asks of a weight.
bool MayRun(const Backend& backend, const Kernel& kernel, const Problem& problem, Format format, Precision precision) {
  const bool runs_here = (kernel.required_features & ~backend.features()) == 0;
  if (kernel.key.op != problem.op || !runs_here || (kernel.skips_input_zeros && !problem.input_zeros)) return false;
  return MayStoreOperands(precision, kernel.key, problem) && TakesFormat(kernel, format) &&
         kernel.accepts(AsRowSolves(kernel, problem));
}

}  // namespace

std::vector<const Kernel*> ConversionCandidates(const Backend& backend, const Problem& problem, Storage from,
                                                Storage to, Precision precision) {
  std::vector<const Kernel*> candidates;
  for (const Kernel& kernel : backend.kernels()) {
    if (kernel.key.op != Op::kConvertLayout || kernel.key.input != from || kernel.key.output != to) continue;
    if (MayRun(backend, kernel, problem, Format::kNone, precision)) candidates.push_back(&kernel);
  }
  return candidates;
}

std::vector<const Kernel*> Candidates(const Backend& backend, const Problem& problem, const Weight* weight,
                                      Precision precision) {
  const Format format = weight == nullptr ? Format::kNone : weight->format();
  Questions questions(weight, problem);
  std::vector<const Kernel*> candidates;
  for (const Kernel& kernel : backend.kernels()) {
    if (MayRun(backend, kernel, problem, format, precision) && questions.Holds(kernel)) candidates.push_back(&kernel);
  }
  return candidates;
}

}  // namespace swizzle
