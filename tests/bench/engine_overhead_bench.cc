// What swizzle::engine adds to a session: Model::Run against Session::Run of the same file, one row each, in turn.
//
// Prints the medians over rounds of the mean run of each. With --only=engine or --only=session one of them runs alone,
// for a profiler that counts instructions.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/opened_model.h"

namespace swizzle::engine {
namespace {

struct BenchOptions {
  std::string model, only;
  int rounds = 21, runs = 200, threads = 1;
};

// One row of zeros for each input; what is free is 8.
class Bench {
 public:
  Bench(const BenchOptions& options, Model& model, OpenedModel& opened, Session& session)
      : options_(options), model_(model), session_(session) {
    const ModelSpec& spec = opened.model->spec();
    shapes_.reserve(spec.inputs.size());
    bytes_.reserve(spec.inputs.size());
    for (const TensorSpec& input : spec.inputs) {
      Shape& shape = shapes_.emplace_back(input.dims);
      for (int64_t& extent : shape) extent = extent == -1 ? 8 : extent;
      if (spec.max_batch_size > 0) shape.insert(shape.begin(), 1);
      bytes_.emplace_back(static_cast<size_t>(*ElementCount(shape)) * ElementBytes(input.dtype));
      views_.push_back({input.dtype, shape, bytes_.back()});
      inputs_.push_back({input.name, DTypeName(input.dtype), shapes_.back(), bytes_.back()});
    }
  }

  int Print() {
    std::vector<double> engine, session;
    for (int round = 0; round < options_.rounds; ++round) {
      if (options_.only != "engine") session.push_back(Microseconds([&] { return RunSession(); }));
      if (options_.only != "session") engine.push_back(Microseconds([&] { return RunEngine(); }));
    }
    if (!session.empty()) std::printf("session %10.2f us\n", Median(session));
    if (!engine.empty()) std::printf("engine  %10.2f us\n", Median(engine));
    return failed_ ? 1 : 0;
  }

 private:
  bool RunEngine() { return model_.Run(inputs_).ok(); }
  bool RunSession() {
    std::vector<std::string> outputs;
    std::vector<Shape> shapes;
    BatchItem item{.inputs = views_, .rows = 1, .outputs = &outputs, .output_shapes = &shapes};
    BatchTimes times;
    return session_.Run(std::span(&item, 1), times).ok();
  }

  template <typename Run>
  double Microseconds(const Run& run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < options_.runs; ++i) failed_ = !run() || failed_;
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    return time.count() / options_.runs;
  }

  static double Median(std::vector<double> times) {
    std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
    return times[times.size() / 2];
  }

  const BenchOptions& options_;
  Model& model_;
  Session& session_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TensorView> views_;
  std::vector<InputView> inputs_;
  bool failed_ = false;
};

int Main(int argc, char** argv) {
  BenchOptions options;
  CLI::App app("What swizzle::engine adds to a session");
  app.add_option("MODEL", options.model, "The model's file")->required();
  app.add_option("--rounds", options.rounds, "Rounds, each of which runs both");
  app.add_option("--runs", options.runs, "Runs of each in a round");
  app.add_option("--threads", options.threads, "Threads of a run");
  app.add_option("--only", options.only, "engine or session alone")->check(CLI::IsMember({"engine", "session"}));
  CLI11_PARSE(app, argc, argv);
  const Options opening{.threads = options.threads};
  const auto model = Model::Open(options.model, opening);
  auto opened = OpenModel(options.model, opening);
  if (!model.ok() || !opened.ok()) {
    std::fprintf(stderr, "%s\n", (model.ok() ? opened.status() : model.status()).ToString().c_str());
    return 1;
  }
  const auto session = (*opened)->model->NewSession(Clock::Real());
  if (!session.ok()) return 1;
  return Bench(options, **model, **opened, **session).Print();
}

}  // namespace
}  // namespace swizzle::engine

int main(int argc, char** argv) { return swizzle::engine::Main(argc, argv); }
