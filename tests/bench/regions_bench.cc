// Models that no plan takes whole, as an executor runs them: on a device beside the host, which says what is right.
//
//   regions_bench --model=vit.onnx --device=cuda --precision=FP32,FP16 --tuning-budget=5 -o json
//
// Inputs are drawn, and copied to the device and back in every run, from memory that it reads by itself, as a server
// has them, or, with --staged, from other memory; times are medians, and the least beside them. Printed, too: what was
// planned, what lies between and where, and the largest difference from the host's outputs in FP32, as a share of the
// largest magnitude. A model that is planned whole is run as such.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/devices.h"
#include "model_loader/load/loader.h"
#include "model_loader/plan/choose/median.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "model_loader/regions/plan_regions.h"

namespace swizzle::bench {
namespace {

using Json = nlohmann::ordered_json;
using Floats = std::vector<float>;

struct Options {
  std::string model;
  std::string device = "cuda";
  std::vector<std::string> precisions = {"FP32"};
  int64_t batch = 1;
  int64_t length = 128;
  int64_t ids = 200;
  int rounds = 101;
  int threads = 0;
  double budget = 5.0;
  double pause = 0.0;
  std::string tuning_cache;
  std::string lock;
  bool check = false;
  bool dense = false;
  bool staged = false;
  bool json = false;
};

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

// What runs the model in one place.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual Status Run(const std::vector<Drawn>& inputs) = 0;
  virtual std::vector<Floats> Outputs() const = 0;
  virtual Json Report() const = 0;
};

class InRegions final : public Contender {
 public:
  static StatusOr<std::unique_ptr<Contender>> Make(const FallbackModel& model, const Devices& devices,
                                                   const PlanOptions& options) {
    auto made = std::make_unique<InRegions>();
    made->regional_ =
        regions::PlanRegions(model.program, {devices.cpu(), devices.main_gpu(), devices.functions()}, options);
    const regions::RegionalProgram& regional = made->regional_;
    if (devices.main_gpu() != nullptr && regional.on_device == nullptr) return Unimplemented(regional.not_on_device);
    SWIZZLE_ASSIGN_OR_RETURN(made->runner_, regional.NewRunner(devices.cpu(), options.threads));
    return std::unique_ptr<Contender>(std::move(made));
  }

  Status Run(const std::vector<Drawn>& inputs) override {
    std::vector<interpreter::TensorPieces> pieces;
    for (const Drawn& input : inputs) {
      pieces.push_back({input.dtype, input.shape, {input.Where()}, input.pinned != nullptr});
    }
    SWIZZLE_ASSIGN_OR_RETURN(outputs_, runner_->RunPieces(pieces));
    return {};
  }
  std::vector<Floats> Outputs() const override {
    std::vector<Floats> outputs;
    for (const interpreter::Array& array : outputs_) {
      if (array.dtype != DType::kFloat32) continue;
      outputs.emplace_back(array.As<float>().begin(), array.As<float>().end());
    }
    return outputs;
  }
  Json Report() const override {
    return {{"regions", regional_.regions.size()},          {"layers", regional_.layers()},
            {"device_nodes", regional_.device_nodes()},     {"host_nodes", regional_.interpreted_nodes()},
            {"host_operators", regional_.OperatorCounts()}, {"weight_bytes", regional_.weight_bytes()}};
  }

 private:
  regions::RegionalProgram regional_;
  std::unique_ptr<interpreter::ProgramRunner> runner_;
  std::vector<interpreter::Array> outputs_;
};

class Whole final : public Contender {
 public:
  static StatusOr<std::unique_ptr<Contender>> Make(Network network, Backend& backend, PlanOptions options,
                                                   int64_t batch) {
    if (network.sequences) return Unimplemented("plan_bench takes networks of sequences");
    auto made = std::make_unique<Whole>();
    options.max_batch = made->batch_ = network.batch_size > 0 ? network.batch_size : batch;
    made->reads_pinned_ = std::holds_alternative<DeviceBackend*>(backend.kind());
    SWIZZLE_ASSIGN_OR_RETURN(made->plan_, MakePlan(std::move(network), backend, options));
    SWIZZLE_ASSIGN_OR_RETURN(made->runner_, made->plan_->NewRunner({}));
    return std::unique_ptr<Contender>(std::move(made));
  }

  Status Run(const std::vector<Drawn>& inputs) override {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].pinned != nullptr && reads_pinned_) {
        runner_->CopyInput(static_cast<int>(i), BatchSize(batch_), 0, inputs[i].Where());
      } else {
        runner_->WriteInput(static_cast<int>(i), BatchSize(batch_), 0, inputs[i].Where());
      }
    }
    return runner_->Run(BatchSize(batch_));
  }
  std::vector<Floats> Outputs() const override {
    std::vector<Floats> outputs;
    for (size_t i = 0; i < plan_->network().outputs.size(); ++i) {
      const auto output = runner_->Output(static_cast<int>(i), BatchSize(batch_));
      outputs.emplace_back(output.begin(), output.end());
    }
    return outputs;
  }
  Json Report() const override {
    return {{"regions", 0},         {"layers", plan_->report().layers.size()},
            {"device_nodes", 0},    {"host_nodes", 0},
            {"host_operators", ""}, {"weight_bytes", plan_->report().device_bytes}};
  }

 private:
  int64_t batch_ = 1;
  bool reads_pinned_ = false;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Runner> runner_;
};

StatusOr<std::unique_ptr<Contender>> MakeContender(const RunnableModel& model, const Devices& devices,
                                                   const PlanOptions& options, int64_t batch) {
  if (const auto* regional = std::get_if<FallbackModel>(&model)) return InRegions::Make(*regional, devices, options);
  return Whole::Make(std::get<LoadedModel>(model).network, devices.main(), options, batch);
}

StatusOr<std::vector<Drawn>> DrawInputs(const RunnableModel& model, const Options& options) {
  std::mt19937 random(1);
  std::vector<Drawn> inputs;
  if (const auto* regional = std::get_if<FallbackModel>(&model)) {
    for (const interpreter::Port& port : regional->program->inputs()) {
      Shape shape = *port.shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] < 0) shape[d] = d == 0 ? options.batch : options.length;
      }
      const bool mask = port.name.ends_with("mask");
      SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), Draw(*port.dtype, std::move(shape), mask, options, random));
    }
    return inputs;
  }
  const Network& network = std::get<LoadedModel>(model).network;
  for (const NetworkPort& port : network.inputs) {
    Shape shape = port.dims;
    if (network.batch_size == 0) shape.insert(shape.begin(), options.batch);
    SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), Draw(port.dtype, std::move(shape), false, options, random));
  }
  return inputs;
}

struct Milliseconds {
  double median = 0.0, least = 0.0;
};

StatusOr<Milliseconds> Time(Contender& contender, const std::vector<Drawn>& inputs, const Options& options) {
  std::vector<double> times;
  for (int round = -5; round < options.rounds; ++round) {  // the first warm up
    if (options.pause > 0.0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.pause));
    const auto start = std::chrono::steady_clock::now();
    SWIZZLE_RETURN_IF_ERROR(contender.Run(inputs));
    const auto end = std::chrono::steady_clock::now();
    if (round >= 0) times.push_back(std::chrono::duration<double, std::milli>(end - start).count());
  }
  return Milliseconds{Median(times), *std::ranges::min_element(times)};
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

// `host`, if any, says what is right.
StatusOr<Json> Measure(const Options& options, const std::string& precision, const RunnableModel& model,
                       const std::vector<Drawn>& inputs, const Devices& devices, Contender* host) {
  TuningCache cache(options.tuning_cache, devices.main());
  SWIZZLE_RETURN_IF_ERROR(cache.status());
  PlanOptions plan;
  plan.threads = options.threads;
  plan.precision = *PrecisionFromName(precision);
  plan.dense_only = options.dense;
  plan.tuning_budget = absl::Seconds(options.budget);
  if (!options.tuning_cache.empty()) plan.tuning_cache = &cache;
  Alone alone(options.lock);
  SWIZZLE_ASSIGN_OR_RETURN(const auto contender, MakeContender(model, devices, plan, options.batch));
  if (!options.tuning_cache.empty()) SWIZZLE_RETURN_IF_ERROR(cache.Save());
  SWIZZLE_ASSIGN_OR_RETURN(const Milliseconds milliseconds, Time(*contender, inputs, options));
  alone.End();
  Json result = {{"model", options.model},        {"device", std::string(devices.main().device_name())},
                 {"precision", precision},        {"batch", options.batch},
                 {"dense_only", options.dense},   {"ms", milliseconds.median},
                 {"least_ms", milliseconds.least}};
  result.update(contender->Report());
  if (host != nullptr) {
    SWIZZLE_RETURN_IF_ERROR(host->Run(inputs));
    result["difference"] = Difference(contender->Outputs(), host->Outputs());
  }
  return result;
}

Status Run(const Options& options) {
  SWIZZLE_ASSIGN_OR_RETURN(const RunnableModel model, LoadRunnableModel(options.model));
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(options.device));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<Drawn> inputs, DrawInputs(model, options));
  if (devices.main_gpu() != nullptr && !options.staged) SWIZZLE_RETURN_IF_ERROR(Pin(*devices.main_gpu(), inputs));
  SWIZZLE_ASSIGN_OR_RETURN(const Devices of_host, Devices::Open("cpu"));
  std::unique_ptr<Contender> host;
  if (options.check) {
    PlanOptions plan;
    plan.threads = options.threads;
    plan.tuning_budget = absl::ZeroDuration();
    SWIZZLE_ASSIGN_OR_RETURN(host, MakeContender(model, of_host, plan, options.batch));
  }
  for (const std::string& precision : options.precisions) {
    SWIZZLE_ASSIGN_OR_RETURN(const Json result, Measure(options, precision, model, inputs, devices, host.get()));
    if (options.json) std::cout << result.dump() << std::endl;
    for (const auto& [key, value] : result.items()) {
      if (!options.json) std::cout << key << ": " << value << "\n";
    }
  }
  return {};
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  std::string format = "text";
  CLI::App app("Models in regions, on a device");
  app.add_option("--model", options.model, "a .onnx file")->required();
  app.add_option("--device", options.device, "cpu, cuda, cuda:N");
  app.add_option("--precision", options.precisions, "one or several")
      ->delimiter(',')
      ->check(CLI::IsMember({"FP32", "FP16X3", "TF32", "FP16", "BF16"}));
  app.add_option("--threads", options.threads, "of the host; 0: all")->check(CLI::Range(0, 1024));
  app.add_option("--batch", options.batch, "where the model leaves it free")->check(CLI::Range(1, 4096));
  app.add_option("--length", options.length, "likewise every other dimension")->check(CLI::Range(1, 4096));
  app.add_option("--ids", options.ids, "inputs of whole numbers are below this, but for masks")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
  app.add_option("--pause", options.pause, "milliseconds before each run, in which threads go to sleep");
  app.add_option("--tuning-budget", options.budget, "seconds, for all regions");
  app.add_option("--tuning-cache", options.tuning_cache, "take known times from this file, and add new ones to it");
  app.add_option("--lock", options.lock, "a file whose lock is held while the device is used");
  app.add_flag("--check", options.check, "compare with the host");
  app.add_flag("--dense", options.dense, "choose dense kernels only");
  app.add_flag("--staged", options.staged, "inputs are in memory that the device doesn't read by itself");
  app.add_option("-o,--output", format)->check(CLI::IsMember({"text", "json"}));
  CLI11_PARSE(app, argc, argv);
  options.json = format == "json";
  const swizzle::Status status = swizzle::bench::Run(options);
  if (!status.ok()) std::cerr << "regions_bench: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
