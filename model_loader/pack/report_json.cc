#include <algorithm>
#include <utility>

#include "model_loader/pack/format_gains.h"
#include "model_loader/pack/model_report.h"
#include "model_loader/pack/plan_totals.h"
#include "nlohmann/json.hpp"

namespace swizzle::pack {
namespace {

using Json = nlohmann::ordered_json;
using KernelTimes = LayerReport::KernelTimes;

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

// Each layer of all parts, those of regions with the region and the batches at which it was measured.
Json LayersJson(const ModelReport& report) {
  Json layers = Json::array();
  for (size_t p = 0; p < report.parts.size(); ++p) {
    const PartReport& part = report.parts[p];
    for (size_t i = 0; i < part.plan.layers.size(); ++i) {
      const LayerReport& layer = part.plan.layers[i];
      layers.push_back(LayerJson(layer, part.structures[i]));
      Json& made = layers.back();
      if (report.program) made.update({{"region", p + 1}, {"measured_batches", part.plan.measured_batches}});
      if (!part.pictures.empty() && HasWeight(layer)) made["picture"] = PictureJson(part.pictures[i]);
      const auto input = part.sparse_inputs.find(static_cast<int>(i));
      if (input == part.sparse_inputs.end()) continue;
      made["sparse_input"] = SparseInputJson(input->second, layer.SkipsInputZeros());
    }
  }
  return layers;
}

// What only one plan has: its batches.
void AddBatches(const PartReport& part, Json& object) {
  object.update({{"max_batch", part.max_batch},
                 {"micro_batch", part.plan.micro_batch},
                 {"small_batch", part.plan.small_batch},
                 {"measured_batches", part.plan.measured_batches},
                 {"buckets", part.plan.buckets}});
}

// Sums of times at each batch.
void AddTimes(const PlanReport& plan, Json& object) {
  object.update(
      {{"microseconds", ChosenTotals(plan)}, {"dense_microseconds", DenseTotals(plan)}, {"formats", GainsJson(plan)}});
}

// Of regions: sums of times over those that were measured at the same batches, and what each region's plan is.
void AddRegions(const ModelReport& report, Json& object) {
  Json groups = Json::array();
  for (const PartGroup& group : GroupsOf(report)) {
    Json regions = Json::array();
    for (const size_t index : group.parts) regions.push_back(index + 1);
    groups.push_back({{"regions", std::move(regions)}, {"measured_batches", group.together.measured_batches}});
    AddTimes(group.together, groups.back());
  }
  object["timings"] = std::move(groups);
  for (size_t p = 0; p < report.parts.size(); ++p) {
    const PartReport& part = report.parts[p];
    object["regions"][p].update({{"places", part.places},
                                 {"max_batch", part.max_batch},
                                 {"arena_bytes", part.arena_bytes},
                                 {"device_bytes", part.plan.device_bytes},
                                 {"buckets", part.plan.buckets}});
  }
}

}  // namespace

Json ReportObject(const ModelReport& report) {
  const PlanReport sum = SumOf(report);
  Json fusions = Json::object();
  for (const auto& [pass, count] : report.fusions) fusions[pass] = count;
  Json object = {{"model", report.model}, {"container", report.container}, {"producer", report.producer}};
  if (report.program) AddProgram(*report.program, object);
  if (!report.parts.empty()) {
    const PlanReport& first = report.parts.front().plan;
    object[report.program ? "device_name" : "device"] = first.device;
    object.update({{"features", report.features}, {"threads", first.threads}});
  }
  if (!report.program) AddBatches(report.parts.front(), object);
  object.update({{"timed_now", sum.timed_now},
                 {"timed_before", sum.timed_before},
                 {"suspect", sum.suspect},
                 {"untimed", sum.untimed},
                 {"sparsity", TotalSparsity(sum)},
                 {"dense_bytes", sum.dense_bytes},
                 {"stored_bytes", sum.stored_bytes},
                 {"packed_bytes", CostsJson(report.costs)},
                 {"device_bytes", sum.device_bytes},
                 {"arena_bytes", LargestArena(report)},
                 {"conversions", sum.conversions}});
  if (report.program) {
    AddRegions(report, object);
  } else {
    AddTimes(report.parts.front().plan, object);
  }
  object.update({{"fusions", std::move(fusions)}, {"layers", LayersJson(report)}});
  return object;
}

std::string ReportJson(const ModelReport& report) {
  Json json = ReportObject(report);
  for (Json& layer : json["layers"]) layer.erase("picture");
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace swizzle::pack
