// A whole model on one device, sparse against dense: per layer what was chosen and what the best dense kernel took, and
// whole, as executors run it (copies between host and device included).
//
//   plan_bench --model=mobilenet_v1:1.4 --sparsity=0.9 --device=cuda --batch=1
//   plan_bench --model=bert-base --device=cuda --batch=8 --length=128 -o json
//
// Two plans are made of the same network, one with all kernels and one with the dense ones alone, and run in turn;
// times are medians of the rounds. Where images are copied to a device, the same without the copies is printed, too.
// With --against-single the second one has all kernels, too, but computes in FP32. With
// --streams=N as many executors, each with a stream of its own, then run the sparse plan side by side for two seconds,
// and their batches a second are printed beside those of one. --write stores the model as a packed file instead, for a
// server.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/devices.h"
#include "model_loader/load/loader.h"
#include "model_loader/packed/packed_writer.h"
#include "model_loader/plan/choose/median.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "tests/support/drawn_models.h"
#include "tests/support/drawn_quantisation.h"

namespace swizzle::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model = "mobilenet_v1";
  double sparsity = 0.9;
  int64_t vector_rows = 1;
  std::string device = "auto";
  std::string precision = "FP32";
  int64_t batch = 1;
  int64_t max_batch = 0;
  int64_t micro_batch = 0;
  int64_t length = 128;
  int rounds = 101;
  int streams = 1;
  double budget = 20.0;
  double weight_budget = 1.0;
  bool json = false;
  bool layers = false;
  bool candidates = false;
  bool pin_threads = false;
  bool against_single = false;
  bool byte_images = false;
  bool int8 = false;
  std::string tuning_cache;
  std::string write;
};

// A plan with operands that were drawn.
class BenchRunner {
 public:
  static StatusOr<BenchRunner> Make(const Network& network, Backend& backend, const Options& options, bool dense_only) {
    const BatchSize size =
        network.sequences ? BatchSize(options.batch, options.batch * options.length) : BatchSize(options.batch);
    PlanOptions plan;
    plan.max_batch = std::max(options.batch, options.max_batch);
    plan.max_tokens = plan.max_batch * (size.tokens / options.batch);
    plan.precision = *PrecisionFromName(options.precision);
    plan.dense_only = dense_only;
    plan.micro_batch = options.micro_batch;
    plan.weight_budget = options.weight_budget;
    plan.tuning_budget = absl::Seconds(options.budget);
    TuningCache cache(options.tuning_cache, backend);
    SWIZZLE_RETURN_IF_ERROR(cache.status());
    if (!options.tuning_cache.empty()) plan.tuning_cache = &cache;
    SWIZZLE_ASSIGN_OR_RETURN(auto made, MakePlan(network, backend, plan));
    if (!options.tuning_cache.empty()) SWIZZLE_RETURN_IF_ERROR(cache.Save());
    return Make(std::move(made), size, options.pin_threads ? std::optional(0) : std::nullopt);
  }

  // Another executor of the same plan.
  StatusOr<BenchRunner> Another(std::optional<int> pinned_executor) const {
    return Make(plan_, size_, pinned_executor);
  }

  // Whether the plan is a device's, and has no sequences.
  bool copies_images() const { return copies_images_; }

  // Runs a batch whose images the device copies, as it does a server's.
  Status RunCopied() {
    size_t offset = 0;
    for (int i = 0; i < static_cast<int>(plan_->network().inputs.size()); ++i) {
      const size_t bytes = runner_->InputMemory(i, size_).size();
      if (source_ == nullptr) {
        SWIZZLE_ASSIGN_OR_RETURN(source_, plan_->AllocateSource(InputBytes()));
      }
      runner_->CopyInput(i, size_, 0, {source_->data() + offset, bytes});
      offset += bytes;
    }
    return runner_->Run(size_);
  }

  // Of one batch, in as many runs as a server would take. `computes_only`: the inputs are in the device's memory.
  StatusOr<double> Microseconds(bool computes_only = false) {
    const int64_t length = size_.tokens / size_.rows;
    const int64_t rows_at_once = std::max<int64_t>(1, plan_->report().micro_batch / length);
    const int64_t runs = CeilDiv(size_.rows, rows_at_once);
    double microseconds = 0;
    for (int64_t run = 0; run < runs; ++run) {
      const int64_t first = size_.rows * run / runs, rows = size_.rows * (run + 1) / runs - first;
      const BatchSize size(rows, rows * length);
      DrawInputs(size);  // again and again: a run may overwrite them
      SetSequences(size);
      const Sequences sequences = {begins_, positions_, {}};
      if (computes_only) runner_->CopyInput(0, size, 0, {});  // Run then takes all inputs to be there
      const auto start = std::chrono::steady_clock::now();
      const bool in_parts = runs > 1 && begins_.empty();
      SWIZZLE_RETURN_IF_ERROR(in_parts ? runner_->RunPart({first, rows, size_.rows})
                                       : runner_->Run(size, begins_.empty() ? nullptr : &sequences));
      microseconds += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    }
    return microseconds;
  }

  const PlanReport& report() const { return plan_->report(); }
  size_t arena_bytes() const { return plan_->arena_bytes(); }

 private:
  explicit BenchRunner(BatchSize size) : size_(size) {}

  static StatusOr<BenchRunner> Make(std::shared_ptr<const Plan> plan, BatchSize size,
                                    std::optional<int> pinned_executor) {
    BenchRunner runner(size);
    runner.plan_ = std::move(plan);
    SWIZZLE_ASSIGN_OR_RETURN(runner.runner_, runner.plan_->NewRunner({.pinned_executor = pinned_executor}));
    SWIZZLE_ASSIGN_OR_RETURN(const auto source, runner.plan_->AllocateSource(1));
    runner.copies_images_ = source != nullptr && !runner.plan_->network().sequences;
    return runner;
  }

  size_t InputBytes() {
    size_t bytes = 0;
    for (int i = 0; i < static_cast<int>(plan_->network().inputs.size()); ++i) {
      bytes += runner_->InputMemory(i, size_).size();
    }
    return bytes;
  }

  void DrawInputs(BatchSize size) {
    const Network& network = plan_->network();
    uint32_t draw = 1;
    for (int i = 0; i < static_cast<int>(network.inputs.size()); ++i) {
      if (network.inputs[i].value == -1) continue;
      if (const int64_t limit = plan_->IdLimit(i); limit > 0) {
        for (int32_t& id : runner_->Ids(i, size)) id = static_cast<int32_t>((draw = draw * 1664525u + 1) % limit);
      } else if (network.inputs[i].dtype == DType::kUint8) {
        for (std::byte& x : runner_->InputMemory(i, size)) {
          x = static_cast<std::byte>((draw = draw * 1664525u + 1013904223u) >> 24);
        }
      } else {
        for (float& x : runner_->Input(i, size)) {
          x = static_cast<float>(static_cast<int32_t>(draw = draw * 1664525u + 1013904223u)) * 0x1p-31f;
        }
      }
    }
  }

  void SetSequences(BatchSize size) {
    if (!plan_->network().sequences) return;
    const int64_t length = size.tokens / size.rows;
    begins_.clear();
    positions_.clear();
    for (int64_t token = 0; token <= size.tokens; token += length) begins_.push_back(static_cast<int32_t>(token));
    for (int64_t token = 0; token < size.tokens; ++token) positions_.push_back(static_cast<int32_t>(token % length));
  }

  BatchSize size_;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Buffer> source_;  // of RunCopied
  std::vector<int32_t> begins_, positions_;
  bool copies_images_ = false;
};

Status RunOnce(BenchRunner& runner) {
  return runner.copies_images() ? runner.RunCopied() : runner.Microseconds().status();
}

// Batches a second of this many executors of the runner's plan, side by side.
StatusOr<double> Rate(const BenchRunner& runner, int streams, bool pin_threads) {
  std::vector<BenchRunner> runners;
  for (int i = 0; i < streams; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(BenchRunner another, runner.Another(pin_threads ? std::optional(i) : std::nullopt));
    for (int warm = 0; warm < 5; ++warm) SWIZZLE_RETURN_IF_ERROR(RunOnce(another));
    runners.push_back(std::move(another));
  }
  constexpr std::chrono::seconds kDuration(2);
  std::atomic<int64_t> batches = 0;
  std::vector<std::thread> threads;
  const auto end = std::chrono::steady_clock::now() + kDuration;
  for (BenchRunner& each : runners) {
    threads.emplace_back([&] {
      while (std::chrono::steady_clock::now() < end && RunOnce(each).ok()) ++batches;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(batches) / std::chrono::duration<double>(kDuration).count();
}

// At the largest measured batch: the chosen kernel's time and the best dense one's.
struct LayerTimes {
  double chosen = 0, dense = -1;
};

LayerTimes TimesOf(const LayerReport& layer) {
  LayerTimes times;
  for (const LayerReport::KernelTimes& candidate : layer.candidates) {
    const double time = candidate.microseconds.back();
    if (candidate.kernel == layer.kernels.back()) times.chosen = time;
    if (candidate.weights == Format::kDense && (times.dense < 0 || time < times.dense)) times.dense = time;
  }
  return times;
}

void PrintCandidates(const LayerReport& layer) {
  for (const LayerReport::KernelTimes& candidate : layer.candidates) {
    std::printf("    %-44s %9.1f\n", candidate.kernel.c_str(), candidate.microseconds.back());
  }
}

// Of the chosen kernel at the largest batch.
std::string TypeText(const LayerReport& layer) {
  const auto chosen = std::ranges::find(layer.candidates, layer.kernels.back(), &LayerReport::KernelTimes::kernel);
  return chosen == layer.candidates.end() ? "" : std::string(DTypeName(chosen->type));
}

void PrintLayers(const PlanReport& report, bool candidates) {
  std::printf("%-24s %-10s %14s %7s  %-5s %-36s %9s %9s\n", "layer", "op", "M x K", "zeros", "type", "kernel", "us",
              "dense us");
  for (const LayerReport& layer : report.layers) {
    if (!layer.moves_data()) continue;
    const LayerTimes times = TimesOf(layer);
    const std::string size = layer.weight_rows == 0 ? "" : Concat(layer.weight_rows, "x", layer.weight_cols);
    std::printf("%-24.24s %-10.10s %14s %6.1f%%  %-5s %-36s %9.1f %9.1f\n", layer.name.c_str(), layer.op.c_str(),
                size.c_str(), 100 * layer.sparsity(), TypeText(layer).c_str(), layer.kernels.back().c_str(),
                times.chosen, std::max(times.dense, 0.0));
    if (candidates) PrintCandidates(layer);
  }
}

// The sum of what each chosen kernel took when it was measured alone, its inputs in the second cache; beside the whole
// run it tells how well that predicts. Nothing if this batch was not measured. Conversions are not in it.
std::optional<double> LayersAlone(const PlanReport& report, const Options& options) {
  const auto measured = std::ranges::find(report.measured_batches, int64_t{options.batch} * options.length);
  if (measured == report.measured_batches.end()) return std::nullopt;
  double sum = 0;
  for (const LayerReport& layer : report.layers) {
    for (const LayerReport::KernelTimes& candidate : layer.candidates) {
      const auto b = static_cast<size_t>(measured - report.measured_batches.begin());
      if (candidate.kernel == layer.KernelAt(b)) sum += candidate.microseconds[b];
    }
  }
  return sum;
}

Json ResultOf(const Options& options, const BenchRunner& sparse, const std::map<std::string, double>& medians) {
  Json kernels = Json::object();
  for (const LayerReport& layer : sparse.report().layers) {
    if (!layer.moves_data()) continue;
    for (const std::string& kernel : std::set<std::string>(layer.kernels.begin(), layer.kernels.end())) {
      kernels[kernel] = kernels.value(kernel, 0) + 1;
    }
  }
  const std::optional<double> alone = LayersAlone(sparse.report(), options);
  return {{"model", options.model},
          {"sparsity", options.sparsity},
          {"vector_rows", options.vector_rows},
          {"batch", options.batch},
          {"length", options.length},
          {"precision", options.precision},
          {"device", sparse.report().device},
          {"sparse_us", medians.at("sparse")},
          {"dense_us", medians.at("dense")},
          {"speed_up", medians.at("dense") / medians.at("sparse")},
          {"weight_bytes", sparse.report().device_bytes},
          {"arena_bytes", sparse.arena_bytes()},
          {"kernels", kernels},
          {"micro_batch", sparse.report().micro_batch},
          {"buckets", sparse.report().buckets},
          {"conversions", sparse.report().conversions},
          {"layers_alone_us", alone ? Json(*alone) : Json()}};
}

void AddTokenRates(const Options& options, Json& result) {
  const double tokens = static_cast<double>(options.batch * options.length);
  result["sparse_tokens_per_second"] = tokens * 1e6 / result["sparse_us"].get<double>();
  result["dense_tokens_per_second"] = tokens * 1e6 / result["dense_us"].get<double>();
}

Status Measure(const Options& options, const Network& network) {
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(options.device));
  SWIZZLE_ASSIGN_OR_RETURN(BenchRunner sparse, BenchRunner::Make(network, devices.main(), options, false));
  Options others = options;
  if (options.against_single) others.precision = "FP32";
  SWIZZLE_ASSIGN_OR_RETURN(BenchRunner dense,
                           BenchRunner::Make(network, devices.main(), others, !options.against_single));
  std::vector<double> sparse_times, dense_times, sparse_computes, dense_computes;
  for (int round = -5; round < options.rounds; ++round) {  // the first warm up
    SWIZZLE_ASSIGN_OR_RETURN(const double sparse_time, sparse.Microseconds());
    SWIZZLE_ASSIGN_OR_RETURN(const double dense_time, dense.Microseconds());
    if (round >= 0) {
      sparse_times.push_back(sparse_time);
      dense_times.push_back(dense_time);
    }
    if (!sparse.copies_images()) continue;
    SWIZZLE_ASSIGN_OR_RETURN(const double sparse_compute, sparse.Microseconds(true));
    SWIZZLE_ASSIGN_OR_RETURN(const double dense_compute, dense.Microseconds(true));
    if (round < 0) continue;
    sparse_computes.push_back(sparse_compute);
    dense_computes.push_back(dense_compute);
  }
  Json result = ResultOf(options, sparse, {{"sparse", Median(sparse_times)}, {"dense", Median(dense_times)}});
  if (!sparse_computes.empty()) {
    result["sparse_compute_us"] = Median(sparse_computes);
    result["dense_compute_us"] = Median(dense_computes);
  }
  result["dense_weight_bytes"] = dense.report().device_bytes;
  result["dense_arena_bytes"] = dense.arena_bytes();
  if (network.sequences) AddTokenRates(options, result);
  for (int streams = 1; options.streams > 1 && streams <= options.streams; streams *= 2) {
    SWIZZLE_ASSIGN_OR_RETURN(const double rate, Rate(sparse, streams, options.pin_threads));
    result["batches_per_second"][std::to_string(streams)] = rate;
  }
  if (options.json) {
    std::cout << result.dump() << "\n";
    return absl::OkStatus();
  }
  if (options.layers || options.candidates) PrintLayers(sparse.report(), options.candidates);
  std::printf("%s %.0f%% batch %lld on %s: %.1f us, %s %.1f us: %.2fx; activations %zu and %zu KiB\n",
              options.model.c_str(), 100 * options.sparsity, static_cast<long long>(options.batch),
              sparse.report().device.c_str(), result["sparse_us"].get<double>(),
              options.against_single ? "in FP32" : "dense", result["dense_us"].get<double>(),
              result["speed_up"].get<double>(), sparse.arena_bytes() / 1024, dense.arena_bytes() / 1024);
  if (result.contains("sparse_compute_us")) {
    const double computes = result["sparse_compute_us"], computes_dense = result["dense_compute_us"];
    std::printf("without copying inputs: %.1f us, dense %.1f us: %.2fx\n", computes, computes_dense,
                computes_dense / computes);
  }
  if (options.streams > 1) std::cout << "batches a second by streams: " << result["batches_per_second"].dump() << "\n";
  return absl::OkStatus();
}

StatusOr<Network> LoadNetwork(const Options& options) {
  const std::filesystem::path path = options.model;
  if (path.extension() != ".onnx" && path.extension() != ".swz") {
    SWIZZLE_ASSIGN_OR_RETURN(Network network, testing::MakeDrawnModel(options.model, options.sparsity));
    if (options.vector_rows > 1) testing::DrawVectors(network, options.vector_rows);
    if (options.byte_images && !network.sequences) {
      for (NetworkPort& port : network.inputs) {
        port.dtype = DType::kUint8;
        network.values[port.value].quantisation = Quantisation{port.dtype, {1.0f / 128}, {128}};
      }
    }
    if (options.int8) SWIZZLE_RETURN_IF_ERROR(testing::QuantiseDrawn(network));
    return network;
  }
  SWIZZLE_ASSIGN_OR_RETURN(RunnableModel model, LoadRunnableModel(path));
  if (auto* loaded = std::get_if<LoadedModel>(&model)) return std::move(loaded->network);
  return Unimplemented(options.model, " runs on the fallback executor only");
}

Status Run(Options options) {
  SWIZZLE_ASSIGN_OR_RETURN(const Network network, LoadNetwork(options));
  if (network.sequences && network.sequences->length > 0) options.length = network.sequences->length;
  return options.write.empty() ? Measure(options, network) : WritePacked(network, options.write);
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  std::string format = "text";
  CLI::App app("Whole models, sparse against dense");
  app.add_option("--model", options.model,
                 "mobilenet_v1[:WIDTH], resnet50, minilm, bert-base, or a .onnx or .swz file");
  app.add_option("--sparsity", options.sparsity, "of drawn weights")->check(CLI::Range(0.0, 0.999));
  app.add_option("--vector", options.vector_rows, "of drawn weights: rows that keep the same columns")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", options.device, "auto, cpu, cuda, cuda:N");
  app.add_option("--precision", options.precision, "on the CPU FP32 or BF16")
      ->check(CLI::IsMember({"FP32", "TF32", "FP16", "BF16", "INT8"}));
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 4096));
  app.add_option("--max-batch", options.max_batch, "that the plans serve, and kernels are chosen for; 0: the batch")
      ->check(CLI::Range(0, 4096));
  app.add_option("--weight-budget", options.weight_budget, "packed weights, as a multiple of one form a layer");
  app.add_option("--micro-batch", options.micro_batch, "rows, or tokens, that a run takes at most; 0: as planned")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--length", options.length, "tokens of each sequence, where the model leaves that free")
      ->check(CLI::Range(1, 4096));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
  app.add_option("--streams", options.streams, "executors to run side by side, too")->check(CLI::Range(1, 64));
  app.add_option("--tuning-budget", options.budget, "seconds, for each plan");
  app.add_option("--tuning-cache", options.tuning_cache, "take known times from this file, and add new ones to it");
  app.add_flag("--layers", options.layers, "print each layer");
  app.add_flag("--candidates", options.candidates, "print each layer and what every kernel took");
  app.add_flag("--int8", options.int8, "quantise the drawn model: weights by rows, activations by drawn ranges");
  app.add_flag("--byte-images", options.byte_images, "draw a model whose images arrive as UINT8");
  app.add_flag("--pin-threads", options.pin_threads,
               "keep each thread to a processor, as the server does with eight or more");
  app.add_flag("--against-single", options.against_single, "beside the same plan in FP32, instead of the dense one");
  app.add_option("--write", options.write, "write the model as this .swz file, and measure nothing");
  app.add_option("-o,--output", format)->check(CLI::IsMember({"text", "json"}));
  CLI11_PARSE(app, argc, argv);
  options.json = format == "json";
  const swizzle::Status status = swizzle::bench::Run(options);
  if (!status.ok()) std::cerr << "plan_bench: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
