#include "model_loader/pack/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <string>

#include "kernels/devices.h"
#include "model_loader/pack/option_checks.h"
#include "model_loader/plan/choose/plan_options.h"

namespace swizzle::pack {
namespace {

constexpr int64_t kMaxBatch = 65536;
constexpr double kMaxTuningSeconds = 3600.0;
constexpr int kMaxSamples = 100000;
constexpr int64_t kMaxTokens = 1 << 24;

constexpr char kFooter[] =
    "MODEL is an ONNX file (.onnx), a packed file (.swz) or a checkpoint (.safetensors, or its folder).\n"
    "Exit codes: 0 done, 1 a check failed, 2 the command line or a file is wrong.\n"
    "`swizzle-pack COMMAND --help` shows a command's flags and an example.";

// The flags of all commands, and what was asked for once they are parsed.
class Flags {
 public:
  Flags() : app_("Looks into, prunes, packs and checks models for the Swizzle inference server.", "swizzle-pack") {
    app_.footer(kFooter);
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "swizzle-pack " SWIZZLE_VERSION);
    app_.get_formatter()->column_width(34);
    AddInspect();
    AddAdvise();
    AddPrune();
    AddQuantize();
    AddPack();
    AddValidate();
    AddRun();
    AddTokenize();
  }

  CLI::App& app() { return app_; }
  const std::optional<Command>& command() const { return command_; }

 private:
  static void AddModel(CLI::App* app, const char* name, std::filesystem::path& model, const char* description) {
    app->add_option(name, model, description)->type_name("")->required();
  }

  void AddFormat(CLI::App* app) {
    app->add_option("-o,--output", format_, "How to print: text or json")
        ->type_name("FORMAT")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json"}).description(""));
  }

  static void AddThreads(CLI::App* app, int& threads) {
    app->add_option("--threads", threads,
                    "Threads to run on, no more than processors; 0: all that this process may use")
        ->type_name("N")
        ->capture_default_str()
        ->transform(CLI::Validator(AtMostProcessors, ""));
  }

  static void AddDevice(CLI::App* app, std::string& device, const std::string& help) {
    app->add_option("--device", device, help + ": cpu, cuda, cuda:1 for that GPU, or auto")
        ->type_name("DEVICE")
        ->capture_default_str()
        ->check([](const std::string& text) { return std::string(ParseDevice(text).status().message()); }, "", "");
  }

  // Where and with what inspect and advise measure.
  template <typename MeasuringCommand>
  void AddMeasuring(CLI::App* app, MeasuringCommand& command, const char* budget) {
    AddThreads(app, command.threads);
    AddDevice(app, command.device, "Where to measure");
    app->add_option("--precision", precision_,
                    "What activations are stored in, FP32 unless it is said, as servers have it: " + PrecisionNames())
        ->type_name("PRECISION")
        ->check(CheckPrecision);
    app->add_option("--max-batch", command.max_batch, "Largest batch to plan for, where the model leaves it free")
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(int64_t{1}, kMaxBatch).description(""));
    app->add_option("--tuning-budget", tuning_seconds_, budget)
        ->type_name("SECONDS")
        ->capture_default_str()
        ->check(CLI::Range(0.0, kMaxTuningSeconds).description(""));
    app->add_option("--tuning-cache", command.tuning_cache, "Take known times from this file, and add new ones to it")
        ->type_name("FILE");
  }

  static void AddReport(CLI::App* app, std::filesystem::path& page, const char* help) {
    app->add_option("--report", page, help)->type_name("FILE.html")->check(CheckPageEnding);
  }

  static void AddSkip(CLI::App* app, std::vector<std::string>& skip, const char* help) {
    app->add_option("--skip", skip, help)
        ->type_name("PATTERN")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  bool json() const { return format_ == "json"; }

  void AddInspect() {
    CLI::App* app = app_.add_subcommand(
        "inspect", "Per layer: sparsity, bytes, and the kernel chosen on this machine, with all candidates' times.");
    app->footer("Example: swizzle-pack inspect model.onnx --threads=1 -o json > model.json");
    AddModel(app, "MODEL", inspect_.model, "The model");
    AddFormat(app);
    AddMeasuring(app, inspect_, "Seconds that measuring may take in all; 0: nothing is measured");
    app->add_option("--weight-budget", inspect_.weight_budget,
                    "Memory for packed weights, as a multiple of what they take once each; more than 1 lets small and "
                    "large batches run on kernels that read them in different forms; 0: 1.25 on a GPU, 1 on a CPU")
        ->type_name("FACTOR")
        ->capture_default_str()
        ->check((CLI::Range(1.0, kMostWeightBudget) | CLI::IsMember({"0"})).description(""));
    AddReport(app, inspect_.page, "Write a page with plots and pictures of the weights to this file, too");
    app->add_option("--calibration", inspect_.calibration,
                    "An .npz file with an array for every input, or a folder of .npy files: what share of sparse "
                    "layers' inputs is zero, and, on a GPU, from which share on skipping these wins; without it, as "
                    "the model was packed with")
        ->type_name("DATA");
    app->add_flag("-v,--verbose", inspect_.schedule,
                  "Of a model that runs in regions, print each step in its order, too: what it is, where it runs, and "
                  "of which steps it reads; JSON has them always");
    app->callback([this] {
      inspect_.json = json();
      inspect_.precision = *PrecisionFromName(precision_);
      inspect_.tuning_budget = absl::Seconds(tuning_seconds_);
      command_ = inspect_;
    });
  }

  void AddAdvise() {
    CLI::App* app = app_.add_subcommand(
        "advise",
        "Per layer: what zeros would bring on this machine, from 50 to 95 %, and whether to prune it at all.");
    app->footer(
        "Each layer is pruned in one shot and its kernels are measured, layers of one shape once. A layer that gains\n"
        "less than a tenth of its time is better left as it is, and so is one whose gain is less than a tenth of what\n"
        "a layer gains on average. On a GPU in FP16 or BF16 the method is vector-wise unless another is named.\n"
        "Example: swizzle-pack advise model.onnx --sparsity=0.8 --report=advice.html");
    AddModel(app, "MODEL", advise_.model, "The model, before it is pruned");
    AddFormat(app);
    app->add_option("--sparsity", advise_.sparsity, "Part of zeros that the advice is for, .5 to .99")
        ->type_name("S")
        ->capture_default_str()
        ->check(CLI::Range(0.5, 0.99).description(""));
    AddPruneMethod(app);
    AddSkip(app, advise_.skip, "Take matching layers as they are; may be repeated");
    AddMeasuring(app, advise_, "Seconds that measuring may take at each sparsity; 0: times are estimates");
    AddReport(app, advise_.page, "Write a page with plots to this file, too");
    app->callback([this, app] {
      TakePruneMethod(*app);
      if (app->count("--method") > 0) advise_.method = prune_.method;
      advise_.vector_rows = prune_.vector_rows;
      advise_.limit = prune_.limit;
      advise_.json = json();
      advise_.precision = *PrecisionFromName(precision_);
      advise_.tuning_budget = absl::Seconds(tuning_seconds_);
      command_ = advise_;
    });
  }

  void AddPrune() {
    CLI::App* app = app_.add_subcommand("prune",
                                        "Zeros the smallest weights of each convolution and linear layer, except of "
                                        "depthwise convolutions and, in ONNX "
                                        "models, of those of several groups.");
    app->footer(
        "An .onnx file stays ONNX, all but the weights untouched, so that training can go on from it; what was in\n"
        "external files is inside. Where OUT ends in .swz it is packed; it must where MODEL is no .onnx file.\n"
        "PATTERN matches node or initializer names: * any characters, ? one, [ab] a or b.\n"
        "Example: swizzle-pack prune model.onnx pruned.onnx --sparsity=0.9 --skip='*stem*' --skip='classifier.*'");
    AddModel(app, "MODEL", prune_.model, "The model");
    app->add_option("OUT,-O,--out", prune_.output, "The file to write, .onnx or .swz")
        ->type_name("FILE")
        ->required()
        ->check(CheckModelEnding);
    AddPruneMethod(app);
    app->add_option("--sparsity", prune_.sparsity,
                    "Part of each layer's weights to be zero, 0 to 1; n-m zeros at least what its pattern says")
        ->type_name("S")
        ->required()
        ->check(CheckPart);
    AddSkip(app, prune_.skip, "Leave matching layers as they are; may be repeated");
    app->add_option(
           "--scores", prune_.scores,
           "Go by these scores instead of magnitudes: an .npz file with an array for each weight, by the name of "
           "node or initializer, or a folder of such .npy files; what scores least goes first")
        ->type_name("FILE");
    app->add_option("--calibration", prune_.calibration,
                    "Inputs of the model, an array for each: the weights that stay are changed so that every layer's "
                    "outputs on them come out as before, by least squares. The more rows, the better; some hundreds do")
        ->type_name("FILE.npz");
    app->callback([this, app] {
      TakePruneMethod(*app);
      command_ = prune_;
    });
  }

  void TakePruneMethod(const CLI::App& app) {
    prune_.limit = *GroupLimitFromText(pattern_);
    prune_.method = PruneMethodFromName(method_).value_or(PruneMethod::kMagnitude);
    CheckFlagsOfMethod(app);
  }

  // A flag of other methods would do nothing: most likely --method was forgotten.
  void CheckFlagsOfMethod(const CLI::App& app) const {
    const auto check = [&](const std::string& flag, std::initializer_list<PruneMethod> methods) {
      if (app.count(flag) == 0 || std::ranges::find(methods, prune_.method) != methods.end()) return;
      std::string names;
      for (const PruneMethod method : methods) names += Concat(names.empty() ? "" : ", ", PruneMethodName(method));
      throw CLI::ValidationError(
          flag, Concat("does nothing with --method=", PruneMethodName(prune_.method), "; it is for ", names));
    };
    check("--vector", {PruneMethod::kVectorWise, PruneMethod::kShflBw, PruneMethod::kBlock});
    check("--pattern", {PruneMethod::kNOfM});
  }

  void AddPruneMethod(CLI::App* app) {
    std::vector<std::string> names;
    std::string help;
    for (const PruneMethodRow& row : PruneMethods()) {
      names.emplace_back(row.name);
      help += Concat(help.empty() ? "What is pruned: " : "; ", row.name, " (", row.chooses, ")");
    }
    app->add_option("--method", method_, help)
        ->type_name("METHOD")
        ->capture_default_str()
        ->check(CLI::IsMember(names).description(""));
    app->add_option("--pattern", pattern_, "Of n-m: at most N of any M neighbouring input channels stay")
        ->type_name("N:M")
        ->capture_default_str()
        ->check(CheckGroupLimit);
    app->add_option("--vector", prune_.vector_rows, "Rows of a vector; rows and columns of a block")
        ->type_name("V")
        ->capture_default_str()
        ->check(CLI::IsMember({2, 4, 8, 16, 32, 64, 128}).description(""));
  }

  void AddQuantize() {
    CLI::App* app = app_.add_subcommand(
        "quantize", "Turns the weights and activations of a model into whole numbers; zeros stay zeros.");
    app->footer(
        "Weights become INT8 by output channel. Activations of a convolutional model become UINT8 by what the\n"
        "calibration data makes of them; what has no whole-number form stays in FP32. An .onnx output has\n"
        "QuantizeLinear and DequantizeLinear around each operator, for other engines, too. Per layer it prints signal\n"
        "over noise, in decibels: of its weight, its input, and, of all layers up to it, its output; and which layers\n"
        "to leave in FP32. Encoders take no calibration data: their linear layers quantise each token when the model\n"
        "runs. An .onnx output has DynamicQuantizeLinear and MatMulInteger in their place. Of models that no plan\n"
        "takes whole, convolutions and products with matrices are quantised in the file's own graph.\n"
        "Example: swizzle-pack quantize pruned.onnx quantised.onnx --calibration=images.npz --skip='*stem*'");
    AddModel(app, "MODEL", quantize_.model, "The pruned FP32 model");
    app->add_option("OUT,-O,--out", quantize_.output, "The file to write, .onnx or .swz")
        ->type_name("FILE")
        ->required()
        ->check(CheckModelEnding);
    app->add_option("--calibration", quantize_.calibration,
                    "Inputs as requests bring them: an .npz file with an array for each, or a folder of .npy files "
                    "called after them; some hundred rows do. Convolutional models need it")
        ->type_name("FILE");
    app->add_option("--observer", observer_,
                    "Which range of an activation is kept: minmax (all), percentile (all but one value in 10,000), or "
                    "mse (what gives the least squared error)")
        ->type_name("OBSERVER")
        ->capture_default_str()
        ->check(CLI::IsMember(ObserverNames()).description(""));
    AddSkip(app, quantize_.skip, "Leave matching layers in FP32; may be repeated");
    AddThreads(app, quantize_.threads);
    app->callback([this] {
      quantize_.observer = *ObserverFromName(observer_);
      command_ = quantize_;
    });
  }

  void AddPack() {
    CLI::App* app = app_.add_subcommand("pack", "Writes a model with its weights compressed, ready to be served.");
    app->footer("Example: swizzle-pack pack pruned.onnx models/mobilenet/1/model.swz");
    AddModel(app, "MODEL", pack_.model, "The model");
    app->add_option("OUT", pack_.output, "The file to write, .swz; its folder is made if need be")
        ->type_name("")
        ->required()
        ->check(CheckPackedEnding);
    const FormatChoices formats = FormatsOfWeights();
    app->add_option("--format", pack_.format,
                    Concat("Of sparse weights: ", formats.help,
                           ", or auto, of those that suit the zeros the one of the least bytes"))
        ->type_name("FORMAT")
        ->capture_default_str()
        ->check(CLI::IsMember(formats.names).description(""));
    app->add_option("--calibration", pack_.calibration,
                    "Inputs as requests bring them: an .npz file with an array for each, or a folder of .npy files "
                    "called after them; some hundred rows do. The file then says how much of what layers with sparse "
                    "weights read is zero, so that plans in FP16 and BF16 on a GPU may skip that where it is faster")
        ->type_name("DATA");
    AddThreads(app, pack_.threads);
    app->callback([this] { command_ = pack_; });
  }

  void AddValidate() {
    CLI::App* app = app_.add_subcommand(
        "validate",
        "Runs two models on the same inputs and compares their outputs, or, with labels, how often they are right. "
        "Exit code 1: they differ.");
    app->footer("Example: swizzle-pack validate pruned.onnx model.swz --samples=100");
    AddModel(app, "DENSE", validate_.reference, "The model to compare with");
    AddModel(app, "PACKED", validate_.candidate, "The model to check");
    AddDevice(app, validate_.device, "Where PACKED runs, against DENSE on the CPU");
    CLI::Option* samples = app->add_option("--samples", validate_.samples, "Inputs to draw")
                               ->type_name("N")
                               ->capture_default_str()
                               ->check(CLI::Range(1, kMaxSamples).description(""));
    CLI::Option* inputs = app->add_option("--inputs", validate_.inputs,
                                          "Inputs to run on instead of drawn ones: an .npz file, not compressed, with "
                                          "an array of rows for each input under its name")
                              ->type_name("FILE")
                              ->excludes(samples);
    CLI::Option* labels = app->add_option("--labels", validate_.labels,
                                          "The class of each row of the inputs, an .npy file of INT64 or INT32: prints "
                                          "top-1 of both models, which --max-drop then compares")
                              ->type_name("FILE")
                              ->needs(inputs);
    app->add_option("--max-drop", validate_.max_drop,
                    "Percentage points that the top-1 of PACKED may be below that of DENSE")
        ->type_name("P")
        ->capture_default_str()
        ->check(IsNotNegative)
        ->needs(labels);
    app->add_option("--tolerance", validate_.tolerance, "Largest difference over largest magnitude, per output")
        ->type_name("T")
        ->capture_default_str()
        ->check(IsNotNegative);
    AddFormat(app);
    app->callback([this] {
      validate_.json = json();
      command_ = validate_;
    });
  }

  void AddRun() {
    CLI::App* app = app_.add_subcommand("run", "Runs a model once, from .npy files to .npy files.");
    app->footer("Example: swizzle-pack run model.onnx --input image=images.npy --output-dir=outputs");
    AddModel(app, "MODEL", run_.model, "The model");
    app->add_option("--input", run_.inputs, "An input's name and its array (FP32); once for each input")
        ->type_name("NAME=FILE.npy")
        ->required()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app->add_option("--output-dir", run_.output_folder, "Where to write each output as NAME.npy; made if need be")
        ->type_name("DIR")
        ->required();
    AddThreads(app, run_.threads);
    AddDevice(app, run_.device, "Where to run");
    app->callback([this] { command_ = run_; });
  }

  void AddTokenize() {
    CLI::App* app = app_.add_subcommand("tokenize", "Shows the tokens that a model's tokeniser makes of texts.");
    app->footer("Example: swizzle-pack tokenize all-MiniLM-L6-v2 'a cat on a mat'");
    AddModel(app, "PATH", tokenize_.path,
             "A folder with tokenizer.json, vocab.txt or a model of sentencepiece, or one of these files");
    app->add_option("TEXT", tokenize_.texts, "Texts; without any, each line of the standard input is one")
        ->type_name("");
    app->add_option("--pair", tokenize_.pair, "A second text for each, as rerankers have pairs")->type_name("TEXT");
    app->add_option("--max-tokens", tokenize_.max_tokens,
                    "Cut off what is longer, special tokens included; 0: as the tokeniser's file says")
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(int64_t{0}, kMaxTokens).description(""));
    app->add_flag("--offsets", tokenize_.offsets, "Show which characters of its text each token stands for");
    AddFormat(app);
    app->callback([this] {
      tokenize_.json = json();
      command_ = tokenize_;
    });
  }

  CLI::App app_;
  std::string format_ = "text";
  std::string method_ = "magnitude";
  std::string observer_ = "minmax";
  std::string precision_ = std::string(PrecisionName(InspectCommand().precision));
  std::string pattern_ = "2:4";
  double tuning_seconds_ = absl::ToDoubleSeconds(InspectCommand().tuning_budget);
  InspectCommand inspect_;
  AdviseCommand advise_;
  PruneCommand prune_;  // and the method of advise
  QuantizeCommand quantize_;
  PackCommand pack_;
  ValidateCommand validate_;
  RunCommand run_;
  TokenizeCommand tokenize_;
  std::optional<Command> command_;
};

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  Flags flags;
  CommandLine line;
  try {
    flags.app().parse(argc, argv);
    line.command = flags.command();
  } catch (const CLI::CallForHelp&) {
    line.text = flags.app().help();
  } catch (const CLI::CallForVersion& version) {
    line.text = Concat(version.what(), "\n");
  } catch (const CLI::Error& error) {
    line.outcome = Outcome::kBadInput;
    line.reason = OneLine(error.what());
    line.text = Concat("swizzle-pack: ", line.reason, " (see --help)\n");
  }
  return line;
}

}  // namespace swizzle::pack
