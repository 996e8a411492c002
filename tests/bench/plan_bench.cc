// A model on one device, sparse against dense: per layer what was chosen and what the best dense kernel took, and
// whole, as executors run it (copies between host and device included).
//
//   plan_bench --model=mobilenet_v1:1.4 --sparsity=0.9 --device=cuda --batch=1
//   plan_bench --model=bert-base --device=cuda --batch=8 --length=128 -o json
//   plan_bench --model=minilm --device=cuda --batch=1,8,32
//   plan_bench --model=swin.onnx --alone --device=cuda --precision=FP32,FP16 --tuning-budget=5 -o json
//
// Two plans are made of the same network, one with all kernels and one with the dense ones alone, and run in turn;
// times are medians of the rounds. Of several batches each has a line; plans serve the largest. Where images are copied
// to a device, the same without the copies is printed, too. With --against-single the second one has all kernels, too,
// but computes in FP32. With
// --streams=N as many executors, each with a stream of its own, then run the sparse plan side by side for two seconds,
// and their batches a second are printed beside those of one. --write stores the model as a packed file instead, for a
// server.
//
// Models that run in regions, and with --alone all models, are run as requests are, inputs and outputs in memory of
// their own (request_bench.h); what shows single layers is for one plan.
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

#include "kernels/devices.h"
#include "model_loader/load/loader.h"
#include "model_loader/packed/packed_writer.h"
#include "model_loader/plan/choose/median.h"
#include "tests/bench/machine_peaks.h"
#include "tests/bench/plan_bench_runner.h"
#include "tests/bench/request_bench.h"
#include "tests/support/drawn_models.h"
#include "tests/support/drawn_quantisation.h"

namespace swizzle::bench {
namespace {

using Json = nlohmann::ordered_json;

using Options = PlanBenchOptions;

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
    std::printf("    %-44s", candidate.kernel.c_str());
    for (const double time : candidate.microseconds) std::printf(" %8.1f", time);
    std::printf("\n");
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
std::optional<double> LayersAlone(const BenchRunner& runner) {
  const PlanReport& report = runner.report();
  const auto measured = std::ranges::find(report.measured_batches, runner.size().tokens);
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

// What each step takes within the plan, beside what its kernel took alone, at the first measured batch where this one
// was not measured.
Status PrintSteps(BenchRunner& runner, int rounds) {
  std::vector<std::vector<double>> times;  // by step
  for (int round = 0; round < rounds; ++round) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<double> microseconds, runner.StepMicroseconds());
    times.resize(microseconds.size());
    for (size_t i = 0; i < microseconds.size(); ++i) times[i].push_back(microseconds[i]);
  }
  const std::vector<int64_t>& measured = runner.report().measured_batches;
  const auto found = std::ranges::find(measured, runner.size().tokens);
  const size_t batch = found == measured.end() ? 0 : found - measured.begin();
  std::printf("%-24s %-36s %9s %9s\n", "layer", "kernel", "us", "alone us");
  for (size_t i = 0; i < times.size(); ++i) {
    const Step& step = runner.steps()[i];
    const LayerReport* const layer = step.layer < 0 ? nullptr : &runner.report().layers[step.layer];
    double alone = 0;
    for (size_t c = 0; layer != nullptr && c < layer->candidates.size(); ++c) {
      if (layer->candidates[c].kernel == step.kernel->name) alone = layer->candidates[c].microseconds[batch];
    }
    std::printf("%-24.24s %-36s %9.1f %9.1f\n", layer == nullptr ? "" : layer->name.c_str(),
                std::string(step.kernel->name).c_str(), Median(times[i]), alone);
  }
  return absl::OkStatus();
}

Json ResultOf(const Options& options, const std::string& precision, const BenchRunner& sparse, const BenchRunner& dense,
              const std::map<std::string, double>& medians) {
  Json kernels = Json::object();
  for (const LayerReport& layer : sparse.report().layers) {
    if (!layer.moves_data()) continue;
    for (const std::string& kernel : std::set<std::string>(layer.kernels.begin(), layer.kernels.end())) {
      kernels[kernel] = kernels.value(kernel, 0) + 1;
    }
  }
  const std::optional<double> alone = LayersAlone(sparse), dense_alone = LayersAlone(dense);
  return {{"model", options.model},
          {"sparsity", options.sparsity},
          {"vector_rows", options.vector_rows},
          {"batch", sparse.size().rows},
          {"length", options.length},
          {"precision", precision},
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
          {"timed_now", sparse.report().timed_now},
          {"untimed_layers", sparse.report().untimed},
          {"layers_alone_us", alone ? Json(*alone) : Json()},
          {"dense_layers_alone_us", dense_alone ? Json(*dense_alone) : Json()},
          {"dense_weight_bytes", dense.report().device_bytes},
          {"dense_arena_bytes", dense.arena_bytes()}};
}

void AddTokenRates(BatchSize size, Json& result) {
  const auto tokens = static_cast<double>(size.tokens);
  result["sparse_tokens_per_second"] = tokens * 1e6 / result["sparse_us"].get<double>();
  result["dense_tokens_per_second"] = tokens * 1e6 / result["dense_us"].get<double>();
}

// Of the batch that both are set to.
StatusOr<Json> MeasureBatch(const Options& options, const std::string& precision, BenchRunner& sparse,
                            BenchRunner& dense) {
  std::vector<double> sparse_times, dense_times, sparse_computes, dense_computes;
  const std::optional<double> round_trip = bench::LineRoundTripNanoseconds();
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
  Json result =
      ResultOf(options, precision, sparse, dense, {{"sparse", Median(sparse_times)}, {"dense", Median(dense_times)}});
  if (!sparse_computes.empty()) {
    result["sparse_compute_us"] = Median(sparse_computes);
    result["dense_compute_us"] = Median(dense_computes);
  }
  if (const auto after = bench::LineRoundTripNanoseconds(); after && !sparse.on_device()) {
    result["round_trip_ns"] = {*round_trip, *after};
  }
  if (sparse.has_sequences()) AddTokenRates(sparse.size(), result);
  for (int streams = 1; options.streams > 1 && streams <= options.streams; streams *= 2) {
    SWIZZLE_ASSIGN_OR_RETURN(const double rate, Rate(sparse, streams, options.pin_threads));
    result["batches_per_second"][std::to_string(streams)] = rate;
  }
  return result;
}

void PrintResult(const Options& options, const BenchRunner& sparse, const Json& result) {
  std::printf(
      "%s %.0f%% batch %lld on %s: %.1f us, %s %.1f us: %.2fx; activations %zu and %zu KiB\n", options.model.c_str(),
      100 * options.sparsity, static_cast<long long>(sparse.size().rows), sparse.report().device.c_str(),
      result["sparse_us"].get<double>(), options.against_single ? "in FP32" : "dense", result["dense_us"].get<double>(),
      result["speed_up"].get<double>(), sparse.arena_bytes() / 1024, result["dense_arena_bytes"].get<size_t>() / 1024);
  if (result.contains("sparse_compute_us")) {
    const double computes = result["sparse_compute_us"], computes_dense = result["dense_compute_us"];
    std::printf("without copying inputs: %.1f us, dense %.1f us: %.2fx\n", computes, computes_dense,
                computes_dense / computes);
  }
  if (result.contains("round_trip_ns")) {
    std::printf("a cache line from one processor to another and back: %.0f ns before, %.0f ns after\n",
                result["round_trip_ns"][0].get<double>(), result["round_trip_ns"][1].get<double>());
  }
  if (options.streams > 1) std::cout << "batches a second by streams: " << result["batches_per_second"].dump() << "\n";
}

Status MeasurePlan(const Options& options, const std::string& precision, const Network& network,
                   const Devices& devices) {
  SWIZZLE_ASSIGN_OR_RETURN(BenchRunner sparse, BenchRunner::Make(network, devices.main(), options, precision, false));
  SWIZZLE_ASSIGN_OR_RETURN(
      BenchRunner dense, options.against_single ? BenchRunner::Make(network, devices.main(), options, "FP32", false)
                                                : BenchRunner::Make(network, devices.main(), options, precision, true));
  if (!options.json && (options.layers || options.candidates)) PrintLayers(sparse.report(), options.candidates);
  for (const int64_t batch : options.batches) {
    for (BenchRunner* runner : {&sparse, &dense}) runner->SetRows(batch);
    SWIZZLE_ASSIGN_OR_RETURN(const Json result, MeasureBatch(options, precision, sparse, dense));
    if (options.json) {
      std::cout << result.dump() << "\n";
      continue;
    }
    constexpr int kMostRounds = 5;  // on a device, where each is of several runs of each step
    const int rounds = sparse.on_device() ? kMostRounds : options.rounds;
    if (options.steps) SWIZZLE_RETURN_IF_ERROR(PrintSteps(sparse, rounds));
    PrintResult(options, sparse, result);
  }
  return absl::OkStatus();
}

StatusOr<RunnableModel> Load(const Options& options) {
  const std::filesystem::path path = options.model;
  if (path.extension() == ".onnx" || path.extension() == ".swz") return LoadRunnableModel(path);
  LoadedModel drawn;
  SWIZZLE_ASSIGN_OR_RETURN(drawn.network, testing::MakeDrawnModel(options.model, options.sparsity));
  Network& network = drawn.network;
  if (options.vector_rows > 1) testing::DrawVectors(network, options.vector_rows);
  if (options.byte_images && !network.sequences) {
    for (NetworkPort& port : network.inputs) {
      port.dtype = DType::kUint8;
      network.values[port.value].quantisation = Quantisation{port.dtype, {1.0f / 128}, {128}};
    }
  }
  if (options.int8) SWIZZLE_RETURN_IF_ERROR(testing::QuantiseDrawn(network));
  return RunnableModel(std::move(drawn));
}

// What is said that only goes for one plan.
Status CheckIsOfRequests(const Options& options) {
  if (!options.layers && !options.candidates && !options.steps && options.streams == 1 && options.write.empty())
    return {};
  return InvalidArgument(
      "--layers, --candidates, --steps, --streams and --write are for a model that is planned whole, ",
      "without --alone; `swizzle-pack inspect` shows the layers of all");
}

Status Run(Options options) {
  SWIZZLE_ASSIGN_OR_RETURN(const RunnableModel model, Load(options));
  const auto* const whole = std::get_if<LoadedModel>(&model);
  if (whole == nullptr || options.alone || options.dense || options.check || options.staged) {
    SWIZZLE_RETURN_IF_ERROR(CheckIsOfRequests(options));
    return MeasureRequests(options, model);
  }
  const Network& network = whole->network;
  if (network.sequences && network.sequences->length > 0) options.length = network.sequences->length;
  if (!options.write.empty()) return WritePacked(network, options.write);
  SWIZZLE_ASSIGN_OR_RETURN(const Devices devices, Devices::Open(options.device));
  for (const std::string& precision : options.precisions) {
    SWIZZLE_RETURN_IF_ERROR(MeasurePlan(options, precision, network, devices));
  }
  return absl::OkStatus();
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
  app.add_option("--precision", options.precisions, "one or more; on the CPU FP32 or BF16")
      ->delimiter(',')
      ->check(CLI::IsMember({"FP32", "FP16X3", "TF32", "FP16", "BF16", "INT8"}));
  app.add_option("--batch", options.batches, "one or more")->delimiter(',')->check(CLI::Range(1, 4096));
  app.add_option("--max-batch", options.max_batch,
                 "that the plans serve, and kernels are chosen for; 0: the largest batch")
      ->check(CLI::Range(0, 4096));
  app.add_option("--weight-budget", options.weight_budget,
                 "packed weights, as a multiple of one form a layer; 0: the usual");
  app.add_option("--micro-batch", options.micro_batch, "rows, or tokens, that a run takes at most; 0: as planned")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--length", options.length,
                 "tokens of each sequence, and what else but the batch the model leaves free")
      ->check(CLI::Range(1, 4096));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
  app.add_option("--streams", options.streams, "executors to run side by side, too")->check(CLI::Range(1, 64));
  app.add_option("--tuning-budget", options.budget, "seconds, for each plan");
  app.add_option("--tuning-cache", options.tuning_cache, "take known times from this file, and add new ones to it");
  app.add_flag("--layers", options.layers, "print each layer");
  app.add_flag("--candidates", options.candidates, "print each layer and what every kernel took");
  app.add_flag("--steps", options.steps, "print what each step takes in the plan and what it took alone");
  app.add_flag("--int8", options.int8, "quantise the drawn model: weights by rows, activations by drawn ranges");
  app.add_flag("--byte-images", options.byte_images, "draw a model whose images arrive as UINT8");
  app.add_flag("--pin-threads", options.pin_threads,
               "keep each thread to a processor, as the server does with eight or more");
  app.add_flag("--against-single", options.against_single, "beside the same plan in FP32, instead of the dense one");
  app.add_flag("--alone", options.alone, "the model alone, as requests run it, without the dense one");
  app.add_flag("--dense", options.dense, "likewise, with dense kernels only");
  app.add_flag("--staged", options.staged, "as requests, whose inputs are in memory that the device doesn't read");
  app.add_flag("--check", options.check, "as requests, whose outputs are compared with the host's");
  app.add_option("--ids", options.ids, "of requests: whole numbers are below this, but for masks")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--pause", options.pause, "of requests: milliseconds before each, in which threads go to sleep");
  app.add_option("--lock", options.lock, "of requests: a file whose lock is held while the device is used");
  app.add_option("--threads", options.threads, "of the host; 0: all")->check(CLI::Range(0, 1024));
  app.add_option("--write", options.write, "write the model as this .swz file, and measure nothing");
  app.add_option("-o,--output", format)->check(CLI::IsMember({"text", "json"}));
  CLI11_PARSE(app, argc, argv);
  options.json = format == "json";
  const swizzle::Status status = swizzle::bench::Run(options);
  if (!status.ok()) std::cerr << "plan_bench: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
