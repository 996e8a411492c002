// Flags of bench and classify.
#include "client/cli/flags.h"

namespace swizzle::client {
namespace {

// As perf_analyzer names them.
void AddLevels(CLI::App* command, BenchOptions& options) {
  AddConcurrency(command, options.concurrency);
  command
      ->add_option("--concurrency-range", options.concurrency_range,
                   "Measure with START requests in flight, then STEP more, until END")
      ->type_name("START:END:STEP");
  command
      ->add_option("--request-rate-range", options.request_rate_range,
                   "Send START requests a second, whether or not those before are answered, then STEP more, until END; "
                   "latencies count from when a request was due")
      ->type_name("START:END:STEP");
  command
      ->add_option("--request-distribution", options.request_distribution,
                   "Gaps between such requests: constant, or poisson, as of callers who know nothing of each other")
      ->type_name("HOW")
      ->capture_default_str()
      ->check(CLI::IsMember({"constant", "poisson"}).description(""));
}

void AddExtent(CLI::App* command, BenchOptions& options) {
  auto* requests = command
                       ->add_option("--requests", options.requests,
                                    "How many to send at each level; 1000, or for 5 seconds at a rate, unless given")
                       ->type_name("N")
                       ->check(IsPositive);
  AddSeconds(command, "--duration", options.duration_s, "Or for how many seconds")->excludes(requests);
  command
      ->add_option("-p,--measurement-interval", options.measurement_interval_ms,
                   "Or in windows of so many milliseconds, until three in a row agree")
      ->type_name("MILLISECONDS")
      ->check(IsPositive);
  command
      ->add_option("-s,--stability-percentage", options.stability_percent,
                   "Rate and latency of such windows agree if they are so close to their mean")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(IsPositive);
  command->add_option("-r,--max-trials", options.max_trials, "Windows until it is given up")
      ->type_name("N")
      ->capture_default_str()
      ->check(IsPositive);
  AddWarmup(command, options.warmup);
}

}  // namespace

void AddBench(CLI::App& app, Command& chosen) {
  const auto [command, options] = AddCommand(
      app, "bench", "Measures rate and latency, of so many requests in flight or a second", chosen, RunBench);
  AddModel(command, options->model, "The model")->required();
  AddLevels(command, *options);
  AddExtent(command, *options);
  auto* batch = AddBatch(command, options->batch, "Rows of a request");
  command
      ->add_option("--shape", options->shapes,
                   "The free dimensions of an input, as NAME:3,224,224, with or without the batch; once for each")
      ->type_name("NAME:D1,D2")
      ->allow_extra_args(false);
  AddInputs(command, options->inputs,
            "An input and its array, once for each input; without it, numbers, ids and masks that the model takes")
      ->excludes(batch);
  command->add_option("--percentile", options->percentile, "Report this percentile of latencies, too")
      ->type_name("P")
      ->check(IsPositive);
  command->add_option("-f,--csv", options->csv, "Write a line for each level there, with the columns of perf_analyzer")
      ->type_name("FILE");
}

void AddClassify(CLI::App& app, Command& chosen) {
  const auto [command, options] = AddCommand(
      app, "classify", "Sends a file of images to a classifier and counts right answers", chosen, RunClassify);
  AddModel(command, options->model, "The model: one input, first output one row of FP32 per image")->required();
  const auto add_file = [command = command](const char* flag, std::string& file, const char* description) {
    return command->add_option(flag, file, description)->type_name("FILE.npy");
  };
  add_file("--images", options->images, "Images, one a row")->required();
  add_file("--labels", options->labels, "The class of each");
  add_file("--predictions", options->predictions, "Where to write the predicted classes");
  AddBatch(command, options->batch, "Images of a request");
  AddWarmup(command, options->warmup);
  AddConcurrency(command, options->concurrency);
}

}  // namespace swizzle::client
