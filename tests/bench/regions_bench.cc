// Models of any kind, as an executor runs them: on a device beside the host, which says what is right.
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
#include "model_loader/compiled/compile.h"
#include "model_loader/plan/choose/median.h"
#include "model_loader/plan/choose/tuning_cache.h"

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

// Runs the model in one place.
class Contender {
 public:
  static StatusOr<std::unique_ptr<Contender>> Make(const RunnableModel& model, const Devices& devices,
                                                   PlanOptions options, int64_t batch) {
    const ModelInterface interface = InterfaceOf(model);
    options.max_batch = interface.fixed_batch > 0 ? interface.fixed_batch : batch;
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

StatusOr<std::vector<Drawn>> DrawInputs(const RunnableModel& model, const Options& options) {
  std::mt19937 random(1);
  std::vector<Drawn> inputs;
  for (const interpreter::Port& port : InterfaceOf(model).inputs) {
    Shape shape = *port.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 0) shape[d] = d == 0 ? options.batch : options.length;
    }
    const bool mask = port.name.ends_with("mask");
    SWIZZLE_ASSIGN_OR_RETURN(inputs.emplace_back(), Draw(*port.dtype, std::move(shape), mask, options, random));
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
  SWIZZLE_ASSIGN_OR_RETURN(const auto contender, Contender::Make(model, devices, plan, options.batch));
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
    SWIZZLE_ASSIGN_OR_RETURN(host, Contender::Make(model, of_host, plan, options.batch));
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
