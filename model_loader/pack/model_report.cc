#include "model_loader/pack/model_report.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "model_loader/pack/format_gains.h"
#include "model_loader/pack/text_table.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

using Json = nlohmann::ordered_json;
using KernelTimes = LayerReport::KernelTimes;

constexpr size_t kLayerWidth = 30;
constexpr size_t kKernelWidth = 31;

bool HasWeight(const LayerReport& layer) { return layer.weight_rows > 0; }

std::string PlaneText(const Extent& extent) { return Concat(extent.height, "x", extent.width); }

// The chosen ones, then the others by their time at the first measured batch; unmeasured ones last.
std::vector<KernelTimes> Ranked(const LayerReport& layer) {
  std::vector<KernelTimes> ranked = layer.candidates;
  const auto rank = [&](const KernelTimes& c) {
    return std::tuple(!layer.RunsOn(c.kernel), c.microseconds.empty(), c.microseconds);
  };
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const KernelTimes& a, const KernelTimes& b) { return rank(a) < rank(b); });
  return ranked;
}

// Those for small batches first, where they differ.
std::string KernelsText(const LayerReport& layer) {
  std::string text;
  for (size_t i = 0; i < layer.kernels.size(); ++i) {
    if (i > 0 && layer.kernels[i] == layer.kernels[i - 1]) continue;
    text += Concat(i == 0 ? "" : ", ", layer.kernels[i]);
  }
  return text;
}

// Microseconds of all chosen kernels together, per measured batch; layers that were not measured add nothing.
std::vector<double> ChosenTotals(const PlanReport& plan) {
  std::vector<double> totals(plan.measured_batches.size(), 0.0);
  for (const LayerReport& layer : plan.layers) {
    for (const KernelTimes& candidate : layer.candidates) {
      for (size_t b = 0; b < std::min(totals.size(), candidate.microseconds.size()); ++b) {
        if (candidate.kernel == layer.KernelAt(b)) totals[b] += candidate.microseconds[b];
      }
    }
  }
  return totals;
}

// Had every layer run on its fastest kernel that takes no sparse weights; its chosen one where there is none.
std::vector<double> DenseTotals(const PlanReport& plan) {
  std::vector<double> totals(plan.measured_batches.size(), 0.0);
  for (const LayerReport& layer : plan.layers) {
    for (size_t b = 0; b < totals.size(); ++b) {
      std::optional<double> least, chosen;
      for (const KernelTimes& candidate : layer.candidates) {
        if (b >= candidate.microseconds.size()) continue;
        const double time = candidate.microseconds[b];
        if (candidate.kernel == layer.KernelAt(b)) chosen = time;
        if (!IsSparse(candidate.weights)) least = std::min(least.value_or(time), time);
      }
      totals[b] += least.value_or(chosen.value_or(0.0));
    }
  }
  return totals;
}

double TotalSparsity(const PlanReport& plan) {
  int64_t elements = 0, nonzeros = 0;
  for (const LayerReport& layer : plan.layers) {
    elements += layer.weight_rows * layer.weight_cols;
    nonzeros += layer.nonzeros;
  }
  return elements == 0 ? 0.0 : 1.0 - static_cast<double>(nonzeros) / static_cast<double>(elements);
}

TextTable NewLayerTable(const PlanReport& plan) {
  std::vector<TextTable::Column> columns = {{"layer"},
                                            {"op"},
                                            {"weight", Align::kRight},
                                            {"plane", Align::kRight},
                                            {"zeros", Align::kRight},
                                            {"structure"},
                                            {"stored", Align::kRight},
                                            {"type"},
                                            {"kernel"}};
  for (int64_t batch : plan.measured_batches) columns.push_back({Concat("batch ", batch), Align::kRight});
  return TextTable(std::move(columns));
}

// What a time alone would not tell.
std::string RemarkOn(const KernelTimes& candidate) {
  if (candidate.copied == 0.0) return ", in place";
  return Concat(candidate.copied < 1.0 ? Concat(", ", PercentText(candidate.copied), " copied") : "",
                candidate.suspect ? " ?" : "");
}

// Where some times are measured, the others are marked.
bool MarksEstimates(const PlanReport& plan) { return plan.timed_now + plan.timed_before > 0; }

void AddTimes(const PlanReport& plan, const KernelTimes* candidate, std::vector<std::string>& cells) {
  for (size_t b = 0; b < plan.measured_batches.size(); ++b) {
    const bool known = candidate != nullptr && b < candidate->microseconds.size();
    const bool marked = known && !candidate->measured && MarksEstimates(plan);
    cells.push_back(known ? Concat(marked ? "~" : "", MicrosecondsText(candidate->microseconds[b])) : "-");
  }
}

std::vector<std::string> LayerCells(const LayerReport& layer, const Structure& structure) {
  std::vector<std::string> cells = {Shortened(layer.name, kLayerWidth), layer.op};
  if (HasWeight(layer)) {
    cells.push_back(Concat(layer.weight_rows, "x", layer.weight_cols));
    cells.push_back(PlaneText(layer.output));
    cells.push_back(PercentText(layer.sparsity()));
    cells.push_back(structure.Name());
    cells.push_back(BytesText(layer.stored_bytes));
  } else {
    cells.insert(cells.end(), {"-", PlaneText(layer.output), "-", "-", "-"});
  }
  return cells;
}

void AddLayer(const PlanReport& plan, const LayerReport& layer, const Structure& structure, TextTable& table) {
  std::vector<std::string> cells = LayerCells(layer, structure);
  const size_t layer_cells = cells.size();
  const std::vector<KernelTimes> ranked = Ranked(layer);
  if (ranked.empty()) {
    cells.push_back("-");
    cells.push_back(layer.moves_data() ? "* " + Shortened(KernelsText(layer), kKernelWidth) : "-");
    AddTimes(plan, nullptr, cells);
    table.AddRow(std::move(cells));
    return;
  }
  if (!layer.moves_data()) {  // though kernels could
    cells.insert(cells.end(), {"-", "* none: another name"});
    AddTimes(plan, nullptr, cells);
    table.AddRow(std::move(cells));
    cells.assign(layer_cells, "");
  }
  for (const KernelTimes& candidate : ranked) {
    cells.emplace_back(DTypeName(candidate.type));
    cells.push_back((layer.RunsOn(candidate.kernel) ? "* " : "  ") + Shortened(candidate.kernel, kKernelWidth) +
                    RemarkOn(candidate));
    AddTimes(plan, &candidate, cells);
    table.AddRow(std::move(cells));
    cells.assign(layer_cells, "");
  }
}

std::string TimesText(const PlanReport& plan, const std::vector<double>& totals) {
  std::string text;
  for (size_t b = 0; b < totals.size(); ++b) {
    text += Concat(b == 0 ? "" : ", ", MicrosecondsText(totals[b]), " at batch ", plan.measured_batches[b]);
  }
  return text;
}

std::string TotalTimesText(const PlanReport& plan) {
  if (plan.measured_batches.empty()) return "not measured";
  return Concat(TimesText(plan, ChosenTotals(plan)), ", all layers together\ndense    ",
                TimesText(plan, DenseTotals(plan)), ", the fastest dense kernel of each layer");
}

// A line for each format that some layer has a kernel of, beside a dense one.
std::string GainsText(const PlanReport& plan) {
  std::string text;
  for (const FormatGain& gain : GainsOfFormats(plan)) {
    text += Concat(text.empty() ? "\nformats  " : "\n         ", FormatName(gain.format), " ",
                   TimesText(plan, gain.microseconds), "; dense ", TimesText(plan, gain.dense_microseconds),
                   gain.layers == 1 ? ", in one layer" : Concat(", in ", gain.layers, " layers"));
  }
  return text;
}

std::string TimingsText(const PlanReport& plan) {
  if (plan.timed_now + plan.timed_before == 0) return "estimated by rule of thumb";
  return Concat(plan.timed_now, " measured now",
                plan.timed_before == 0 ? "" : Concat(", ", plan.timed_before, " before"),
                plan.suspect == 0 ? ""
                                  : Concat(", ", plan.suspect,
                                           " suspect: the machine was busy, so that times with "
                                           "a '?' are too long, or estimated; measure again when it is quiet"),
                plan.untimed == 0 ? "" : Concat(", ", plan.untimed, " layers or choices not timed"));
}

std::string FusionsText(const std::vector<std::pair<std::string, int>>& fusions) {
  if (fusions.empty()) return "done when the file was packed";
  std::string text;
  for (const auto& [pass, count] : fusions) {
    if (count > 0) text += Concat(text.empty() ? "" : ", ", pass, " ", count);
  }
  return text.empty() ? "none" : text;
}

// Nothing where batches of all sizes run on the same kernels.
std::string BucketsText(const PlanReport& plan) {
  if (plan.buckets.size() < 2) return "";
  std::string text = ", for batches up to ";
  for (size_t i = 0; i < plan.buckets.size(); ++i) text += Concat(i == 0 ? "" : ", ", plan.buckets[i]);
  return text;
}

std::string HeadingText(const ModelReport& report) {
  const std::string producer = report.producer.empty() ? "unknown producer" : report.producer;
  return Concat(report.model, ": ", report.container, ", ", producer, ", ", report.plan.layers.size(),
                " layers (* marks the chosen kernel of each", BucketsText(report.plan),
                MarksEstimates(report.plan) ? "; ~ a like layer's time, or an estimate)\n" : ")\n");
}

// What the weights take as `pack --format` stores them. Nothing where there are no sparse ones.
std::string CostsText(const FormatCosts& costs) {
  std::string text;
  for (const FormatCost& cost : costs.formats) {
    text += Concat(text.empty() ? "\npacked   " : ", ", cost.name, " ", BytesText(cost.bytes));
    if (cost.layers < costs.sparse_layers) text += Concat(" (", cost.layers, " of ", costs.sparse_layers, " layers)");
  }
  return text;
}

std::string TotalsText(const ModelReport& report) {
  const PlanReport& plan = report.plan;
  const std::string weights =
      Concat(BytesText(plan.dense_bytes), " dense, ", BytesText(plan.stored_bytes), " stored (",
             RatioText(plan.dense_bytes, plan.stored_bytes), " smaller), ", BytesText(plan.device_bytes),
             " as the kernels hold them; ", PercentText(TotalSparsity(plan)), " are zero");
  const std::string memory =
      Concat(plan.conversions, plan.conversions == 1 ? " layout conversion" : " layout conversions", "; arena ",
             BytesText(report.arena_bytes), " for batches up to ", report.max_batch);
  const std::string device =
      Concat(plan.device, " (", report.features, "), ", plan.threads, plan.threads == 1 ? " thread" : " threads");
  return Concat("weights  ", weights, CostsText(report.costs), "\nkernels  ", TotalTimesText(plan), GainsText(plan),
                "\ntimes    ", TimingsText(plan), "\nplan     ", memory, "\nfusions  ", FusionsText(report.fusions),
                "\ndevice   ", device, "\n");
}

// Nothing where there are none.
std::string SparseInputsText(const ModelReport& report) {
  if (report.sparse_inputs.empty()) return "";
  const bool timed = std::ranges::any_of(report.sparse_inputs, [](const auto& of) { return of.second.batch > 0; });
  std::vector<TextTable::Column> columns = {{"layer"}};
  for (const char* title : {"zeros of its input", "empty runs", "meets"}) columns.push_back({title, Align::kRight});
  if (timed) {
    for (const char* title : {"both sparse", "dense FP16", "wins from", "chosen"})
      columns.push_back({title, Align::kRight});
  }
  TextTable table(columns);
  for (const auto& [layer, input] : report.sparse_inputs) {
    std::vector<std::string> cells = {Shortened(report.plan.layers[layer].name, kLayerWidth),
                                      PercentText(input.zeros.elements), PercentText(input.zeros.runs),
                                      PercentText(input.meets)};
    const std::string chosen = report.plan.layers[layer].SkipsInputZeros() ? "yes" : "no";
    if (timed && input.batch == 0) cells.insert(cells.end(), {"-", "-", "-", chosen});
    if (timed && input.batch > 0) {
      cells.insert(cells.end(), {MicrosecondsText(input.microseconds), MicrosecondsText(input.dense_microseconds),
                                 input.wins_from ? PercentText(*input.wins_from) : "none", chosen});
    }
    table.AddRow(std::move(cells));
  }
  return Concat("\nOn calibration data; 'meets' is what products that skip the zeros of both sides would multiply",
                timed ? ", 'wins from' the zeros with which one does; plans in FP16 and BF16 choose by measured times"
                      : " (a GPU would time them)",
                ":\n\n", table.Render());
}

Json ExtentJson(const Extent& extent) {
  return {{"channels", extent.channels}, {"height", extent.height}, {"width", extent.width}};
}

Json StructureJson(const Structure& structure) {
  Json json = {{"name", structure.Name()}, {"pattern", SparsityPatternName(structure.pattern)}};
  if (structure.pattern == SparsityPattern::kBlocks) {
    json["block_rows"] = structure.block_rows;
    json["block_cols"] = structure.block_cols;
  }
  if (structure.pattern == SparsityPattern::kRowVectors) json["vector_rows"] = structure.block_rows;
  if (structure.pattern == SparsityPattern::kNOfM) {
    json["n"] = structure.n;
    json["m"] = structure.m;
  }
  Json formats = Json::array();
  for (Format format : FormatsThatHold(structure)) formats.push_back(FormatName(format));
  json["formats"] = std::move(formats);
  json["fill"] = structure.fill;
  json["bytes"] = structure.bytes;
  json["zero_rows"] = structure.zero_rows;
  json["zero_cols"] = structure.zero_cols;
  json["zero_channels"] = structure.zero_channels;
  return json;
}

Json WeightJson(const LayerReport& layer, const Structure& structure) {
  if (!HasWeight(layer)) return nullptr;
  return {{"rows", layer.weight_rows},          {"cols", layer.weight_cols},
          {"nonzeros", layer.nonzeros},         {"sparsity", layer.sparsity()},
          {"format", FormatName(layer.format)}, {"sparse", IsSparse(layer.format)},
          {"dense_bytes", layer.dense_bytes},   {"stored_bytes", layer.stored_bytes},
          {"device_bytes", layer.device_bytes}, {"structure", StructureJson(structure)}};
}

Json CostsJson(const FormatCosts& costs) {
  Json json = Json::object();
  for (const FormatCost& cost : costs.formats) json[cost.name] = {{"layers", cost.layers}, {"bytes", cost.bytes}};
  return json;
}

Json GainsJson(const PlanReport& plan) {
  Json json = Json::object();
  for (const FormatGain& gain : GainsOfFormats(plan)) {
    json[FormatName(gain.format)] = {
        {"layers", gain.layers}, {"microseconds", gain.microseconds}, {"dense_microseconds", gain.dense_microseconds}};
  }
  return json;
}

Json PictureJson(const WeightPicture& picture) {
  return {{"rows", picture.rows},
          {"cols", picture.cols},
          {"density", picture.density},
          {"corner_rows", picture.corner_rows},
          {"corner_cols", picture.corner_cols},
          {"corner", picture.corner}};
}

Json SparseInputJson(const SparseInput& input, bool chosen) {
  Json json = {
      {"zeros", input.zeros.elements},          {"empty_runs", input.zeros.runs}, {"empty_planes", input.zeros.planes},
      {"empty_channels", input.zeros.channels}, {"meets", input.meets},           {"chosen", chosen}};
  if (input.batch == 0) return json;
  json["batch"] = input.batch;
  json["both_sparse_microseconds"] = input.microseconds;
  json["dense_f16_microseconds"] = input.dense_microseconds;
  json["wins"] = input.wins();
  json["wins_from"] = input.wins_from ? Json(*input.wins_from) : Json(nullptr);
  return json;
}

Json LayerJson(const LayerReport& layer, const Structure& structure) {
  Json candidates = Json::array();
  for (const KernelTimes& candidate : Ranked(layer)) {
    candidates.push_back({{"kernel", candidate.kernel},
                          {"chosen", layer.RunsOn(candidate.kernel)},
                          {"weights", FormatName(candidate.weights)},
                          {"type", DTypeName(candidate.type)},
                          {"sparse", IsSparse(candidate.weights)},
                          {"measured", candidate.measured},
                          {"suspect", candidate.suspect},
                          {"microseconds", candidate.microseconds}});
    if (candidate.copied < 1.0) candidates.back()["copied"] = candidate.copied;
  }
  return {{"name", layer.name},
          {"op", layer.op},
          {"input", ExtentJson(layer.input)},
          {"output", ExtentJson(layer.output)},
          {"weight", WeightJson(layer, structure)},
          {"kernel", layer.moves_data() ? Json(KernelsText(layer)) : Json(nullptr)},
          {"kernels", layer.moves_data() ? Json(layer.kernels) : Json::array()},
          {"blocking", layer.blocking.empty() ? Json(nullptr) : Json(layer.blocking)},
          {"serial", layer.serial},
          {"candidates", std::move(candidates)}};
}

}  // namespace

std::string ReportText(const ModelReport& report) {
  const PlanReport& plan = report.plan;
  TextTable table = NewLayerTable(plan);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    AddLayer(plan, plan.layers[i], report.structures[i], table);
  }
  return Concat(HeadingText(report), "\n", table.Render(), "\n", TotalsText(report), SparseInputsText(report));
}

Json ReportObject(const ModelReport& report) {
  const PlanReport& plan = report.plan;
  Json fusions = Json::object();
  for (const auto& [pass, count] : report.fusions) fusions[pass] = count;
  Json layers = Json::array();
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    layers.push_back(LayerJson(plan.layers[i], report.structures[i]));
    if (!report.pictures.empty() && HasWeight(plan.layers[i])) {
      layers.back()["picture"] = PictureJson(report.pictures[i]);
    }
    const auto input = report.sparse_inputs.find(static_cast<int>(i));
    if (input == report.sparse_inputs.end()) continue;
    layers.back()["sparse_input"] = SparseInputJson(input->second, plan.layers[i].SkipsInputZeros());
  }
  return {{"model", report.model},
          {"container", report.container},
          {"producer", report.producer},
          {"device", plan.device},
          {"features", report.features},
          {"threads", plan.threads},
          {"max_batch", report.max_batch},
          {"micro_batch", plan.micro_batch},
          {"small_batch", plan.small_batch},
          {"measured_batches", plan.measured_batches},
          {"buckets", plan.buckets},
          {"timed_now", plan.timed_now},
          {"timed_before", plan.timed_before},
          {"suspect", plan.suspect},
          {"untimed", plan.untimed},
          {"sparsity", TotalSparsity(plan)},
          {"dense_bytes", plan.dense_bytes},
          {"stored_bytes", plan.stored_bytes},
          {"packed_bytes", CostsJson(report.costs)},
          {"device_bytes", plan.device_bytes},
          {"arena_bytes", report.arena_bytes},
          {"conversions", plan.conversions},
          {"microseconds", ChosenTotals(plan)},
          {"dense_microseconds", DenseTotals(plan)},
          {"formats", GainsJson(plan)},
          {"fusions", std::move(fusions)},
          {"layers", std::move(layers)}};
}

std::string ReportJson(const ModelReport& report) {
  Json json = ReportObject(report);
  for (Json& layer : json["layers"]) layer.erase("picture");
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace swizzle::pack
