// Flags of models, stats, watch and config.
#include <algorithm>

#include "client/cli/flags.h"

namespace swizzle::client {
namespace {

// A call of watch may take no longer: meanwhile Ctrl-C is not looked at.
constexpr absl::Duration kLongestLook = absl::Seconds(2);

}  // namespace

void AddObservation(CLI::App& app, Command& chosen) {
  AddCommand(app, "models", "The models of the server, with their versions and states", chosen, RunModels);
  const auto stats = AddCommand(app, "stats",
                                "What the server counted of its models since they were loaded: requests, "
                                "queue, compute, batches",
                                chosen, RunStats);
  AddModel(stats.command, stats.options->model, "A model; without it, all");
  AddSeconds(stats.command, "--interval", stats.options->interval_s,
             "Look again after so many seconds, and tell what happened meanwhile, with rates");
  const auto watch = AddCommand(app, "watch", "Shows what all models do, every second, until Ctrl-C", chosen, RunWatch);
  AddSeconds(watch.command, "--interval", watch.options->interval_s, "Seconds between two looks")
      ->capture_default_str();
  watch.command->callback([options = watch.options, &chosen] {
    chosen = [options](const ClientOptions& connection, Terminal& terminal) {
      ClientOptions bounded = connection;
      bounded.timeout = std::min(bounded.timeout, kLongestLook);
      return RunWatch(*NewClient(bounded), *options, terminal);
    };
  });
  watch.command->add_option("--count", watch.options->count, "End after as many")->type_name("N")->check(IsPositive);
  const auto config =
      AddCommand(app, "config", "What a model is served by: its config.pbtxt, and what was derived", chosen, RunConfig);
  AddModel(config.command, config.options->model, "The model")->required();
}

}  // namespace swizzle::client
