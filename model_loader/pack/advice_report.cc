#include "model_loader/pack/advice_report.h"

#include <cmath>
#include <utility>
#include <vector>

#include "model_loader/pack/text_table.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLayerWidth = 34;

std::string SparsityText(double sparsity) { return Concat(std::lround(100.0 * sparsity), " %"); }

std::string NameText(const LayerAdvice& layer) {
  const std::string places = layer.places == 1 ? "" : Concat(" (", layer.places, " times)");
  return Shortened(layer.name, kLayerWidth - places.size()) + places;
}

std::string BatchText(const Advice& advice, size_t batch) {
  const int64_t count = advice.batches[batch];
  return advice.counts_tokens ? Concat(count, " tokens") : Concat("batch ", count);
}

std::string PaysText(const LayerAdvice& layer) {
  return layer.pays_from < 1.0 ? Concat("from ", SparsityText(layer.pays_from)) : "never";
}

std::vector<std::string> TotalCells(const Advice& advice, size_t batch) {
  std::vector<std::string> cells = {"all layers of the model", "", "100.0 %", MicrosecondsText(advice.dense[batch])};
  for (const BatchTimes& total : advice.totals) cells.push_back(MicrosecondsText(total[batch]));
  cells.insert(cells.end(), {"", ""});
  return cells;
}

std::string TimesTable(const Advice& advice, size_t batch) {
  std::vector<TextTable::Column> columns = {
      {"layer"}, {"weight", Align::kRight}, {"share", Align::kRight}, {"dense", Align::kRight}};
  for (const double sparsity : advice.sparsities) columns.push_back({SparsityText(sparsity), Align::kRight});
  columns.insert(columns.end(), {{"pays"}, {"advice"}});
  TextTable table(std::move(columns));
  for (const LayerAdvice& layer : advice.layers) {
    const double places = static_cast<double>(layer.places);
    std::vector<std::string> cells = {NameText(layer), Concat(layer.rows, "x", layer.cols),
                                      PercentText(places * layer.share), MicrosecondsText(layer.dense[batch])};
    for (const BatchTimes& times : layer.times) cells.push_back(MicrosecondsText(times[batch]));
    cells.insert(cells.end(), {PaysText(layer), std::string(VerdictName(layer.verdict))});
    table.AddRow(std::move(cells));
  }
  table.AddRow(TotalCells(advice, batch));
  return table.Render();
}

// Empty where nothing is known.
std::string SquaresTable(const Advice& advice) {
  std::vector<TextTable::Column> columns = {{"layer"}};
  for (const double sparsity : advice.sparsities) columns.push_back({SparsityText(sparsity), Align::kRight});
  TextTable table(std::move(columns));
  bool is_empty = true;
  for (const LayerAdvice& layer : advice.layers) {
    if (layer.removed_squares.empty()) continue;
    std::vector<std::string> cells = {NameText(layer)};
    for (const double removed : layer.removed_squares) cells.push_back(PercentText(removed));
    table.AddRow(std::move(cells));
    is_empty = false;
  }
  if (is_empty) return "";
  return Concat(
      "\nShare of the squared norm of each weight that pruning in one shot removes (of what training brings "
      "back it says nothing):\n\n",
      table.Render());
}

std::string MethodText(const Advice& advice) {
  return advice.vector_rows == 0 ? advice.method : Concat(advice.method, " of ", advice.vector_rows);
}

std::string SummaryText(const Advice& advice) {
  int64_t left = 0, all = 0;
  for (const LayerAdvice& layer : advice.layers) {
    all += layer.places;
    left += layer.verdict == Verdict::kPrune ? 0 : layer.places;
  }
  std::string text = Concat("advice   ", SparsityText(advice.wanted), " zeros in ", all - left, " of ", all,
                            all == 1 ? " layer: " : " layers: ");
  for (size_t b = 0; b < advice.batches.size(); ++b) {
    const double gain = advice.advised[b] > 0.0 ? advice.dense[b] / advice.advised[b] : 1.0;
    text += Concat(b == 0 ? "" : ", ", MicrosecondsText(advice.advised[b]), " at ", BatchText(advice, b), " (",
                   RatioText(std::lround(10.0 * gain), 10), " as fast as dense)");
  }
  if (advice.mixes_batches) {
    text += "\n         regions run at batches of their own: each one's smallest counts with the others' smallest";
  }
  if (advice.left_out > 0) {
    text += Concat("\n         ", advice.left_out, " layers that run at more or fewer are in none of these figures");
  }
  for (const double sparsity : advice.apart) {
    text += Concat("\n         at ", SparsityText(sparsity),
                   " layers are planned otherwise, so that nothing is said of it");
  }
  text += advice.in_regions ? "\n         what lies between regions is in none of these times" : "";
  return Concat(text, "\nzeros    ", MethodText(advice), ", at the same places in layers of one shape\ndevice   ",
                advice.device, " (", advice.features, "), ", advice.threads,
                advice.threads == 1 ? " thread" : " threads", "; ", advice.timed_now, " measurements",
                advice.untimed == 0 ? "" : Concat(", ", advice.untimed, " layers or choices not timed"),
                advice.suspect == 0 ? "" : Concat(", ", advice.suspect, " suspect, for the machine was busy"), "\n");
}

Json LayerJson(const Advice& advice, const LayerAdvice& layer) {
  Json at = Json::array();
  for (size_t s = 0; s < advice.sparsities.size(); ++s) {
    at.push_back({{"sparsity", advice.sparsities[s]}, {"microseconds", layer.times[s]}, {"kernel", layer.kernels[s]}});
    at.back()["removed_squares"] = layer.removed_squares.empty() ? Json(nullptr) : Json(layer.removed_squares[s]);
  }
  const bool pruned = layer.verdict == Verdict::kPrune;
  return {{"name", layer.name},
          {"places", layer.places},
          {"rows", layer.rows},
          {"cols", layer.cols},
          {"share", layer.share},
          {"dense_microseconds", layer.dense},
          {"at", std::move(at)},
          {"pays_from", layer.pays_from < 1.0 ? Json(layer.pays_from) : Json(nullptr)},
          {"advice", VerdictName(layer.verdict)},
          {"advised_sparsity", pruned ? advice.wanted : 0.0}};
}

}  // namespace

std::string AdviceText(const Advice& advice) {
  std::string text = Concat(
      advice.model, ": ", advice.container, ", ", advice.layers.size(),
      " layers that zeros can be in; latency as predicted from measured kernels, 'share' of the dense model's\n");
  for (size_t b = 0; b < advice.batches.size(); ++b) {
    if (b > 0 && b + 1 < advice.batches.size()) continue;
    text += Concat("\n", BatchText(advice, b), "\n\n", TimesTable(advice, b));
  }
  return Concat(text, SquaresTable(advice), "\n", SummaryText(advice));
}

Json AdviceObject(const Advice& advice) {
  Json layers = Json::array();
  for (const LayerAdvice& layer : advice.layers) layers.push_back(LayerJson(advice, layer));
  return {{"advice", true},
          {"model", advice.model},
          {"container", advice.container},
          {"producer", advice.producer},
          {"device", advice.device},
          {"features", advice.features},
          {"threads", advice.threads},
          {"max_batch", advice.max_batch},
          {"in_regions", advice.in_regions},
          {"method", advice.method},
          {"vector_rows", advice.vector_rows == 0 ? Json(nullptr) : Json(advice.vector_rows)},
          {"timed_now", advice.timed_now},
          {"untimed", advice.untimed},
          {"mixes_batches", advice.mixes_batches},
          {"left_out", advice.left_out},
          {"suspect", advice.suspect},
          {"counts_tokens", advice.counts_tokens},
          {"measured_batches", advice.batches},
          {"sparsities", advice.sparsities},
          {"sparsities_apart", advice.apart},
          {"wanted", advice.wanted},
          {"dense_microseconds", advice.dense},
          {"microseconds", advice.totals},
          {"advised_microseconds", advice.advised},
          {"other_microseconds", advice.rest},
          {"layers", std::move(layers)}};
}

std::string AdviceJson(const Advice& advice) {
  return AdviceObject(advice).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace swizzle::pack
