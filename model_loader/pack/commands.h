// The commands of swizzle-pack: each takes its arguments, works on files, and writes to a terminal.
//
// Errors name the file or argument that is wrong. Not thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_PACK_COMMANDS_H_
#define SWIZZLE_MODEL_LOADER_PACK_COMMANDS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/precision.h"
#include "kernels/base/status.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/pruning/pruner.h"
#include "model_loader/quantising/observer.h"

namespace swizzle::pack {

// What the process exits with. Errors of a command, a Status, exit with kBadInput.
enum class Outcome : int { kOk = 0, kCheckFailed = 1, kBadInput = 2 };

// Results go to `out`; progress goes to `err` where a person is watching it, and line by line to who asked for it.
struct Terminal {
  std::ostream& out;
  std::ostream& err;
  bool show_progress = false;
  std::function<bool(std::string_view line)> hear = nullptr;  // false ends the command, with CANCELLED
  std::istream* in = nullptr;                                 // null: nothing comes
};

// Prints what a plan for `model` on this machine looks like: per layer its weight, its kernel and the times of all
// candidates.
struct InspectCommand {
  std::filesystem::path model;
  bool json = false;
  int threads = 0;             // 0: all that this process may use
  std::string device = "cpu";  // see kernels/devices.h; of several the first
  Precision precision = Precision::kFloat32;
  int64_t max_batch = 64;
  absl::Duration tuning_budget = absl::Seconds(15);
  double weight_budget = 0.0;          // see PlanOptions
  std::filesystem::path tuning_cache;  // empty: none
  std::filesystem::path page;          // where to write the same as an HTML page; empty: nowhere
  std::filesystem::path calibration;   // .npz, or a folder of .npy files: zeros of inputs, too; empty: none
  bool schedule = false;               // print each step of a model that runs in regions, too
};

// Prints what zeros would bring: the latency of `model` on this machine at sparsities of 50 to 95 %, layer by layer, by
// measured kernels, and which layers to leave as they are.
struct AdviseCommand {
  std::filesystem::path model;
  bool json = false;
  int threads = 0;  // as of InspectCommand, like what follows
  std::string device = "cpu";
  Precision precision = Precision::kFloat32;
  int64_t max_batch = 64;
  absl::Duration tuning_budget = absl::Seconds(15);  // at each sparsity
  std::filesystem::path tuning_cache;
  std::filesystem::path page;
  std::optional<PruneMethod> method;  // none: magnitudes, or, on a GPU in half precision, vectors of rows
  int64_t vector_rows = 64;
  GroupLimit limit = {};
  double sparsity = 0.9;          // of the layers that are not to be left as they are
  std::vector<std::string> skip;  // patterns of layer or initializer names
};

// Writes `model` with the least weights of each layer zeroed: ONNX as ONNX, or packed where `output` ends in .swz,
// as it must for a packed model or a checkpoint.
struct PruneCommand {
  std::filesystem::path model;
  std::filesystem::path output;
  PruneMethod method = PruneMethod::kMagnitude;
  int64_t vector_rows = 64;
  GroupLimit limit = {};
  double sparsity = 0.0;
  std::filesystem::path scores;       // empty: magnitudes
  std::filesystem::path calibration;  // empty: weights that stay are as they were
  std::vector<std::string> skip;      // patterns of layer or initializer names
};

// Writes `model` with its weights and activations as whole numbers, by what calibration data makes of it, or, of an
// encoder, without: as ONNX that other engines run, too, or packed where `output` ends in .swz.
struct QuantizeCommand {
  std::filesystem::path model;
  std::filesystem::path output;
  std::filesystem::path calibration;  // .npz, or a folder of .npy files
  ObserverKind observer = ObserverKind::kMinMax;
  std::vector<std::string> skip;  // patterns of layer names
  int threads = 0;
};

// Writes `model` as a packed file.
struct PackCommand {
  std::filesystem::path model;
  std::filesystem::path output;
  std::string format = "auto";        // of sparse weights
  std::filesystem::path calibration;  // .npz, or a folder of .npy files: zeros of inputs are kept; empty: none are
  int threads = 0;                    // to run it on
};

// Runs two models on the same inputs, drawn or of a file; the check fails if their outputs differ by more than
// `tolerance` (largest difference over largest magnitude of the first, per output), or, with labels, if the candidate's
// top-1 is more than `max_drop` percentage points below the reference's.
struct ValidateCommand {
  std::filesystem::path reference;
  std::filesystem::path candidate;
  std::string device = "cpu";    // the candidate's; the reference runs on the CPU
  int samples = 16;              // to draw
  std::filesystem::path inputs;  // .npz, an array for each input; empty: drawn
  std::filesystem::path labels;  // .npy, a class for each row of `inputs`; empty: none
  double tolerance = 1e-4;
  double max_drop = 0.5;
  bool json = false;
};

// Runs `model` once on arrays from files, and writes each output as an array to a file.
struct RunCommand {
  std::filesystem::path model;
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::filesystem::path output_folder;
  int threads = 0;
  std::string device = "cpu";
};

// Prints what the tokeniser in `path`, a folder or one of a tokeniser's files, makes of each text.
struct TokenizeCommand {
  std::filesystem::path path;
  std::vector<std::string> texts;   // none: the lines of the terminal's input
  std::optional<std::string> pair;  // the second text of each
  int64_t max_tokens = 0;           // what is longer is cut off; 0: as the tokeniser's file says
  bool offsets = false;             // which characters each token stands for is shown, too
  bool json = false;
};

// What is printed of a model, and the page.
struct Inspection {
  std::string text;  // or JSON
  std::string page;  // empty unless it is asked for
};
// What InspectCommand comes to, without writing any of it. `known`: times of the device's kernels, which more are added
// to, in place of the command's file; null: there is none.
StatusOr<Inspection> Inspect(const InspectCommand& command, bool with_page, TuningCache* known, Terminal& terminal);

using Command = std::variant<InspectCommand, AdviseCommand, PruneCommand, QuantizeCommand, PackCommand, ValidateCommand,
                             RunCommand, TokenizeCommand>;

StatusOr<Outcome> Execute(const InspectCommand& command, Terminal& terminal);
StatusOr<Outcome> Execute(const AdviseCommand& command, Terminal& terminal);
StatusOr<Outcome> Execute(const PruneCommand& command, Terminal& terminal);
StatusOr<Outcome> Execute(const QuantizeCommand& command, Terminal& terminal);
StatusOr<Outcome> Execute(const PackCommand& command, Terminal& terminal);
StatusOr<Outcome> Execute(const ValidateCommand& command, Terminal& terminal);
StatusOr<Outcome> Execute(const RunCommand& command, Terminal& terminal);
StatusOr<Outcome> Execute(const TokenizeCommand& command, Terminal& terminal);

// The command line `argv`, from parsing to the exit code.
int RunTool(int argc, const char* const* argv, Terminal& terminal);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_COMMANDS_H_
