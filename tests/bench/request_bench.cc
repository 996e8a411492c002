#include "tests/bench/request_bench.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/devices.h"
#include "model_loader/compiled/compile.h"
#include "model_loader/plan/choose/median.h"
#include "model_loader/plan/choose/tuning_cache.h"

namespace swizzle::bench {
namespace {

using Json = nlohmann::ordered_json;
using Options = PlanBenchOptions;
using Floats = std::vector<float>;

// One input's elements.
struct Drawn {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;
  std::unique_ptr<Buffer> pinned = nullptr;  // the same in memory that the device reads; null: nowhere

  std::span<const std::byte> Where() const {
    return pinned == nullptr ? std::span<const std::byte>(bytes) : std::span(pinned->data(), bytes.size());
  }
};

Status Pin(DeviceBackend& device, std::vector<Drawn>& inputs) {
  for (Drawn& input : inputs) {
    SWIZZLE_ASSIGN_OR_RETURN(input.pinned, device.AllocateHost(input.bytes.size()));
    std::memcpy(input.pinned->data(), input.bytes.data(), input.bytes.size());
  }
  return {};
}

StatusOr<Drawn> Draw(DType dtype, Shape shape, bool mask, const Options& options, std::mt19937& random) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
  Drawn drawn{dtype, std::move(shape), std::vector<std::byte>(static_cast<size_t>(elements) * ElementBytes(dtype))};
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t whole = mask ? 1 : static_cast<int64_t>(random() % static_cast<uint64_t>(options.ids));
    const auto narrow = static_cast<int32_t>(whole);
    const float number = normal(random);
    const void* const from = dtype == DType::kInt64   ? static_cast<const void*>(&whole)
                             : dtype == DType::kInt32 ? static_cast<const void*>(&narrow)
                                                      : &number;
    std::memcpy(drawn.bytes.data() + i * ElementBytes(dtype), from, ElementBytes(dtype));
  }
  return drawn;
}

// Runs the model in one place.
class Contender {
 public:
  static StatusOr<std::unique_ptr<Contender>> Make(const RunnableModel& model, const Devices& devices,
                                                   PlanOptions options) {
    const ModelInterface interface = InterfaceOf(model);
    if (interface.fixed_batch > 0) options.max_batch = interface.fixed_batch;
    SWIZZLE_ASSIGN_OR_RETURN(CompiledModel compiled, CompileFor(devices, model, options));
    if (devices.main_gpu() != nullptr && !compiled.on_device())
      return Unimplemented(compiled.regional()->not_on_device);
    std::unique_ptr<Contender> made(new Contender(std::move(compiled)));
    SWIZZLE_ASSIGN_OR_RETURN(made->runner_, made->model_.NewRunner({.threads = options.threads}));
    return made;
  }

  Status Run(const std::vector<Drawn>& inputs) {
    std::vector<TensorPieces> pieces;
    for (const Drawn& input : inputs) {
      pieces.push_back({input.dtype, input.shape, {input.Where()}, input.pinned != nullptr && model_.on_device()});
    }
    SWIZZLE_ASSIGN_OR_RETURN(outputs_, runner_->RunPieces(pieces));
    return {};
  }
  // Of the last run: those that are FP32.
  std::vector<Floats> Outputs() const {
    std::vector<Floats> outputs;
    for (const TensorView& view : outputs_) {
      if (view.dtype != DType::kFloat32) continue;
      outputs.emplace_back(view.bytes.size() / sizeof(float));
      std::memcpy(outputs.back().data(), view.bytes.data(), view.bytes.size());
    }
    return outputs;
  }
  Json Report() const {
    if (const Plan* const plan = model_.plan().get()) {
      return {{"regions", 0},         {"layers", plan->report().layers.size()},
              {"device_nodes", 0},    {"host_nodes", 0},
              {"host_operators", ""}, {"weight_bytes", plan->report().device_bytes}};
    }
    const regions::RegionalProgram& regional = *model_.regional();
    return {{"regions", regional.regions.size()},          {"layers", regional.layers()},
            {"device_nodes", regional.device_nodes()},     {"host_nodes", regional.interpreted_nodes()},
            {"host_operators", regional.OperatorCounts()}, {"weight_bytes", regional.weight_bytes()}};
  }

 private:
  explicit Contender(CompiledModel model) : model_(std::move(model)) {}

  const CompiledModel model_;
  std::unique_ptr<ModelRunner> runner_;
  std::vector<TensorView> outputs_;
};

StatusOr<std::vector<Drawn>> DrawInputs(const RunnableModel& model, int64_t batch, const Options& options) {
  std::mt19937 random(1);
  std::vector<Drawn> inputs;
  for (const interpreter::Port& port : InterfaceOf(model).inputs) {
    Shape shape = *port.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 0) shape[d] = d == 0 ? batch : options.length;
    }
    const bool mask = port.name.ends_with("mask");
    SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), Draw(*port.dtype, std::move(shape), mask, options, random));
  }
  return inputs;
}

// Of each contender, milliseconds of rounds in which they took turns.
StatusOr<std::vector<std::vector<double>>> Time(std::span<Contender* const> contenders,
                                                const std::vector<Drawn>& inputs, const Options& options) {
  std::vector<std::vector<double>> times(contenders.size());
  for (int round = -5; round < options.rounds; ++round) {  // the first warm up
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (options.pause > 0.0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.pause));
      const auto start = std::chrono::steady_clock::now();
      SWIZZLE_RETURN_IF_ERROR(contenders[i]->Run(inputs));
      const auto end = std::chrono::steady_clock::now();
      if (round >= 0) times[i].push_back(std::chrono::duration<double, std::milli>(end - start).count());
    }
  }
  return times;
}

double Difference(const std::vector<Floats>& actual, const std::vector<Floats>& expected) {
  double worst = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    double difference = 0.0, magnitude = 0.0;
    for (size_t e = 0; e < expected[i].size(); ++e) {
      const double apart = std::abs(static_cast<double>(actual[i][e]) - expected[i][e]);
      difference = std::isfinite(apart) ? std::max(difference, apart) : INFINITY;
      magnitude = std::max(magnitude, std::abs(static_cast<double>(expected[i][e])));
    }
    worst = std::max(worst, difference / magnitude);
  }
  return worst;
}

// Holds a file's lock, so that others who do use the device afterwards. No name: nothing.
class Alone {
 public:
  explicit Alone(const std::string& file)
      : file_(file.empty() ? -1 : open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() { End(); }
  void End() {
    if (file_ >= 0) close(std::exchange(file_, -1));
  }

 private:
  int file_;
};

class RequestBench {
 public:
  RequestBench(const Options& options, const RunnableModel& model, const Devices& devices, Contender* host)
      : options_(options), model_(model), devices_(devices), host_(host) {}

  // A line for each batch.
  Status Measure(const std::string& precision) {
    Alone alone(options_.lock);
    TuningCache cache(options_.tuning_cache, devices_.main());
    SWIZZLE_RETURN_IF_ERROR(cache.status());
    SWIZZLE_ASSIGN_OR_RETURN(const auto own, Make(precision, options_.dense, cache));
    std::unique_ptr<Contender> other;
    if (!options_.alone && !options_.dense) {
      SWIZZLE_ASSIGN_OR_RETURN(other,
                               options_.against_single ? Make("FP32", false, cache) : Make(precision, true, cache));
    }
    if (!options_.tuning_cache.empty()) SWIZZLE_RETURN_IF_ERROR(cache.Save());
    std::vector<Measured> measured;
    for (const int64_t batch : options_.batches) {
      SWIZZLE_ASSIGN_OR_RETURN(measured.emplace_back(), MeasureBatch(precision, batch, *own, other.get()));
    }
    alone.End();
    for (Measured& of_batch : measured) {
      if (host_ != nullptr) {
        SWIZZLE_RETURN_IF_ERROR(host_->Run(of_batch.inputs));
        of_batch.result["difference"] = Difference(of_batch.outputs, host_->Outputs());
      }
      Print(of_batch.result);
    }
    return {};
  }

 private:
  StatusOr<std::unique_ptr<Contender>> Make(const std::string& precision, bool dense_only, TuningCache& cache) const {
    PlanOptions plan = OptionsOfPlan(options_, precision, dense_only, options_.length);
    if (!options_.tuning_cache.empty()) plan.tuning_cache = &cache;
    return Contender::Make(model_, devices_, plan);
  }

  struct Measured {
    std::vector<Drawn> inputs;
    std::vector<Floats> outputs;
    Json result;
  };

  StatusOr<Measured> MeasureBatch(const std::string& precision, int64_t batch, Contender& own, Contender* other) const {
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<Drawn> inputs, DrawInputs(model_, batch, options_));
    if (devices_.main_gpu() != nullptr && !options_.staged) SWIZZLE_RETURN_IF_ERROR(Pin(*devices_.main_gpu(), inputs));
    std::vector<Contender*> contenders = {&own};
    if (other != nullptr) contenders.push_back(other);
    SWIZZLE_ASSIGN_OR_RETURN(const auto times, Time(contenders, inputs, options_));
    Json result = {{"model", options_.model},
                   {"device", std::string(devices_.main().device_name())},
                   {"precision", precision},
                   {"batch", batch},
                   {"dense_only", options_.dense},
                   {"ms", Median(times[0])},
                   {"least_ms", *std::ranges::min_element(times[0])}};
    if (other != nullptr) {
      const double ours = 1e3 * Median(times[0]), others = 1e3 * Median(times[1]);
      result.update({{"sparse_us", ours}, {"dense_us", others}, {"speed_up", others / ours}});
    }
    result.update(own.Report());
    return Measured{std::move(inputs), own.Outputs(), std::move(result)};
  }

  void Print(const Json& result) const {
    if (options_.json) std::cout << result.dump() << std::endl;
    for (const auto& [key, value] : result.items()) {
      if (!options_.json) std::cout << key << ": " << value << "\n";
    }
  }

  const Options& options_;
  const RunnableModel& model_;
  const Devices& devices_;
  Contender* const host_;  // says what is right; null: nothing does
};

}  // namespace

Status MeasureRequests(const PlanBenchOptions& options, const RunnableModel& model) {
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(options.device));
  SWIZZLE_ASSIGN_OR_RETURN(const Devices of_host, Devices::Open("cpu"));
  std::unique_ptr<Contender> host;
  if (options.check) {
    PlanOptions plan = OptionsOfPlan(options, "FP32", false, options.length);
    plan.tuning_budget = absl::ZeroDuration();
    SWIZZLE_ASSIGN_OR_RETURN(host, Contender::Make(model, of_host, plan));
  }
  RequestBench bench(options, model, devices, host.get());
  for (const std::string& precision : options.precisions) SWIZZLE_RETURN_IF_ERROR(bench.Measure(precision));
  return {};
}

}  // namespace swizzle::bench
