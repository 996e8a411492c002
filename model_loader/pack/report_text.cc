#include <algorithm>
#include <optional>

#include "model_loader/pack/format_gains.h"
#include "model_loader/pack/model_report.h"
#include "model_loader/pack/plan_totals.h"
#include "model_loader/pack/text_table.h"

namespace swizzle::pack {
namespace {

using KernelTimes = LayerReport::KernelTimes;

constexpr size_t kLayerWidth = 30;
constexpr size_t kKernelWidth = 31;

std::string PlaneText(const Extent& extent) { return Concat(extent.height, "x", extent.width); }

TextTable NewLayerTable(const PlanReport& plan, bool in_regions) {
  std::vector<TextTable::Column> columns = {{"layer"},
                                            {"op"},
                                            {"weight", Align::kRight},
                                            {"plane", Align::kRight},
                                            {"zeros", Align::kRight},
                                            {"structure"},
                                            {"stored", Align::kRight},
                                            {"type"},
                                            {"kernel"}};
  if (in_regions) columns.insert(columns.begin(), {"region", Align::kRight});
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

// `cells`: those of the layer. plan: what batches were measured.
void AddLayer(const PlanReport& plan, const LayerReport& layer, std::vector<std::string> cells, TextTable& table) {
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

std::string HeadingText(const ModelReport& report, const PlanReport& sum) {
  if (report.program) return Concat(report.model, ": ", ProgramText(*report.program));
  const std::string producer = report.producer.empty() ? "unknown producer" : report.producer;
  return Concat(report.model, ": ", report.container, ", ", producer, ", ", sum.layers.size(),
                " layers (* marks the chosen kernel of each", BucketsText(report.parts.front().plan),
                MarksEstimates(sum) ? "; ~ a like layer's time, or an estimate)\n" : ")\n");
}

std::string LayersText(const ModelReport& report, const PartGroup& group) {
  TextTable table = NewLayerTable(group.together, report.program.has_value());
  for (const size_t index : group.parts) {
    const PartReport& part = report.parts[index];
    for (size_t i = 0; i < part.plan.layers.size(); ++i) {
      std::vector<std::string> cells = LayerCells(part.plan.layers[i], part.structures[i]);
      if (report.program) cells.insert(cells.begin(), std::to_string(index + 1));
      AddLayer(group.together, part.plan.layers[i], std::move(cells), table);
    }
  }
  return Concat("\n", table.Render());
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

// "regions 1, 4-6: "; nothing where there is but one group.
std::string PartsText(const std::vector<PartGroup>& groups, const PartGroup& group) {
  if (groups.size() < 2) return "";
  std::string text;
  for (size_t i = 0; i < group.parts.size(); ++i) {
    const size_t first = group.parts[i];
    while (i + 1 < group.parts.size() && group.parts[i + 1] == group.parts[i] + 1) ++i;
    text += Concat(text.empty() ? "" : ", ", first + 1,
                   group.parts[i] == first ? std::string() : Concat("-", group.parts[i] + 1));
  }
  return Concat(group.parts.size() == 1 ? "region " : "regions ", text, ": ");
}

std::string PlanText(const ModelReport& report, const PlanReport& sum) {
  const std::string conversions =
      Concat(sum.conversions, sum.conversions == 1 ? " layout conversion" : " layout conversions");
  if (!report.program) {
    return Concat("\nplan     ", conversions, "; arena ", BytesText(LargestArena(report)), " for batches up to ",
                  report.parts.front().max_batch, "\nfusions  ", FusionsText(report.fusions));
  }
  return Concat("\nplans    ", report.parts.size(), " for ", report.program->regional.region_count(), " places; ",
                conversions, "; arenas of ", BytesText(LargestArena(report)), " at most");
}

std::string TotalsText(const ModelReport& report, const PlanReport& sum, const std::vector<PartGroup>& groups) {
  const PlanReport& first = report.parts.front().plan;
  std::string text =
      Concat("\nweights  ", BytesText(sum.dense_bytes), " dense, ", BytesText(sum.stored_bytes), " stored (",
             RatioText(sum.dense_bytes, sum.stored_bytes), " smaller), ", BytesText(sum.device_bytes),
             " as the kernels hold them; ", PercentText(TotalSparsity(sum)), " are zero", CostsText(report.costs));
  for (const PartGroup& group : groups) {
    text += Concat("\nkernels  ", PartsText(groups, group), TotalTimesText(group.together), GainsText(group.together));
  }
  return Concat(text, "\ntimes    ", TimingsText(sum), PlanText(report, sum), "\ndevice   ", first.device, " (",
                report.features, "), ", first.threads, first.threads == 1 ? " thread\n" : " threads\n");
}

// A row for each layer of which zeros were counted.
void AddSparseInputs(const PartReport& part, bool timed, TextTable& table) {
  for (const auto& [layer, input] : part.sparse_inputs) {
    const LayerReport& of = part.plan.layers[static_cast<size_t>(layer)];
    std::vector<std::string> cells = {Shortened(of.name, kLayerWidth), PercentText(input.zeros.elements),
                                      PercentText(input.zeros.runs), PercentText(input.meets)};
    const std::string chosen = of.SkipsInputZeros() ? "yes" : "no";
    if (timed && input.batch == 0) cells.insert(cells.end(), {"-", "-", "-", chosen});
    if (timed && input.batch > 0) {
      cells.insert(cells.end(), {MicrosecondsText(input.microseconds), MicrosecondsText(input.dense_microseconds),
                                 input.wins_from ? PercentText(*input.wins_from) : "none", chosen});
    }
    table.AddRow(std::move(cells));
  }
}

// Nothing where there are none.
std::string SparseInputsText(const ModelReport& report) {
  const auto is_timed = [](const auto& of) { return of.second.batch > 0; };
  bool any = false, timed = false;
  for (const PartReport& part : report.parts) {
    any |= !part.sparse_inputs.empty();
    timed |= std::ranges::any_of(part.sparse_inputs, is_timed);
  }
  if (!any) return "";
  std::vector<TextTable::Column> columns = {{"layer"}};
  for (const char* title : {"zeros of its input", "empty runs", "meets"}) columns.push_back({title, Align::kRight});
  if (timed) {
    for (const char* title : {"both sparse", "dense FP16", "wins from", "chosen"})
      columns.push_back({title, Align::kRight});
  }
  TextTable table(columns);
  for (const PartReport& part : report.parts) AddSparseInputs(part, timed, table);
  return Concat("\nOn calibration data; 'meets' is what products that skip the zeros of both sides would multiply",
                timed ? ", 'wins from' the zeros with which one does; plans in FP16 and BF16 choose by measured times"
                      : " (a GPU would time them)",
                ":\n\n", table.Render());
}

}  // namespace

std::string ReportText(const ModelReport& report) {
  const PlanReport sum = SumOf(report);
  std::string text = HeadingText(report, sum);
  if (!report.parts.empty()) {
    const std::vector<PartGroup> groups = GroupsOf(report);
    for (const PartGroup& group : groups) text += LayersText(report, group);
    text += Concat(TotalsText(report, sum, groups), SparseInputsText(report));
  }
  if (report.program && report.program->schedule) text += ScheduleText(report.program->regional);
  return text;
}

}  // namespace swizzle::pack
