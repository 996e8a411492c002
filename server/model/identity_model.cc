#include "server/model/identity_model.h"

#include <string>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

class IdentityModel final : public Model {
 public:
  IdentityModel(ModelSpec spec, absl::Duration execute_delay, int64_t repeats)
      : spec_(std::move(spec)), execute_delay_(execute_delay), repeats_(repeats) {}

  const ModelSpec& spec() const override { return spec_; }
  std::shared_ptr<const ModelFacts> facts() const override { return facts_; }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock& clock) override;

 private:
  const ModelSpec spec_;
  const std::shared_ptr<const ModelFacts> facts_ = std::make_shared<const ModelFacts>();
  const absl::Duration execute_delay_;
  const int64_t repeats_;
};

class IdentitySession final : public Session {
 public:
  // `repeats`: of a decoupled model, else 0.
  IdentitySession(absl::Duration execute_delay, int64_t repeats, Clock& clock)
      : execute_delay_(execute_delay), repeats_(repeats), clock_(clock) {}

  Status Run(std::span<BatchItem> batch, BatchTimes& times) override {
    if (repeats_ > 0) return Repeat(batch, times);
    const Instant start = clock_.Now();
    Delay(start);
    times.compute = clock_.Now() - start;
    for (BatchItem& item : batch) Copy(item, *item.outputs, *item.output_shapes);
    times.output = clock_.Now() - start - times.compute;
    return absl::OkStatus();
  }
  bool RunsAtOnce(uint64_t) const override { return execute_delay_ == absl::ZeroDuration() && repeats_ == 0; }

 private:
  void Delay(Instant start) {
    MutexLock lock(mutex_);
    while (clock_.Now() < start + execute_delay_) clock_.WaitUntil(mutex_, never_, start + execute_delay_);
  }

  // In rounds, until nobody wants more.
  Status Repeat(std::span<BatchItem> batch, BatchTimes& times) {
    const Instant start = clock_.Now();
    std::vector<BatchItem*> wanted;
    for (BatchItem& item : batch) wanted.push_back(&item);
    for (int64_t round = 0; round < repeats_ && !wanted.empty(); ++round) {
      Delay(clock_.Now());
      std::erase_if(wanted, [](const BatchItem* item) {
        std::vector<std::string> outputs;
        std::vector<Shape> shapes;
        Copy(*item, outputs, shapes);
        return !item->answers->Emit(std::move(outputs), std::move(shapes));
      });
    }
    times.compute = clock_.Now() - start;
    return absl::OkStatus();
  }

  static void Copy(const BatchItem& item, std::vector<std::string>& outputs, std::vector<Shape>& shapes) {
    outputs.reserve(item.inputs.size());
    shapes.reserve(item.inputs.size());
    for (const TensorView& input : item.inputs) {
      outputs.emplace_back(reinterpret_cast<const char*>(input.bytes.data()), input.bytes.size());
      shapes.push_back(input.shape);
    }
  }

  const absl::Duration execute_delay_;
  const int64_t repeats_;
  Clock& clock_;
  Mutex mutex_;
  CondVar never_;  // only the clock ends a delay
};

StatusOr<std::unique_ptr<Session>> IdentityModel::NewSession(Clock& clock) {
  return std::make_unique<IdentitySession>(execute_delay_, spec_.decoupled ? repeats_ : 0, clock);
}

std::string Describe(const TensorSpec& tensor) {
  return Concat("'", tensor.name, "' (", DTypeName(tensor.dtype), " ", ShapeText(tensor.dims), ")");
}

}  // namespace

StatusOr<std::shared_ptr<Model>> NewIdentityModel(ModelSpec spec, absl::Duration execute_delay, int64_t repeats) {
  if (spec.inputs.empty() || spec.inputs.size() != spec.outputs.size()) {
    return InvalidArgument("identity model '", spec.name, "' has ", spec.inputs.size(), " inputs and ",
                           spec.outputs.size(), " outputs; it needs as many outputs as inputs, at least one");
  }
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const TensorSpec& input = spec.inputs[i];
    const TensorSpec& output = spec.outputs[i];
    if (input.dtype != output.dtype || input.dims != output.dims) {
      return InvalidArgument("identity model '", spec.name, "': output ", Describe(output),
                             " must have the data type and dims of input ", Describe(input));
    }
  }
  if (execute_delay < absl::ZeroDuration()) {
    return InvalidArgument("identity model '", spec.name, "': execute_delay_ms must not be negative");
  }
  return std::make_shared<IdentityModel>(std::move(spec), execute_delay, repeats);
}

}  // namespace swizzle
