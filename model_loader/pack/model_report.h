// What `inspect` prints of a model, as text, as JSON, and on its page: a model is one plan or a program with a plan for
// each of its regions, and each plan is a part of the report. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/format/structure.h"
#include "model_loader/pack/format_costs.h"
#include "model_loader/pack/program_report.h"
#include "model_loader/pack/sparse_inputs.h"
#include "model_loader/pack/weight_picture.h"
#include "model_loader/plan/run/plan.h"
#include "nlohmann/json_fwd.hpp"

namespace swizzle::pack {

// What is reported of one plan.
struct PartReport {
  PlanReport plan;
  // Of the weight of each layer of the plan; as made where a layer has none.
  std::vector<Structure> structures;
  std::vector<WeightPicture> pictures = {};  // none at all where nobody asked
  SparseInputs sparse_inputs = {};           // likewise
  int64_t max_batch = 0;
  int64_t arena_bytes = 0;
  int64_t places = 1;  // of the model at which it runs
};

struct ModelReport {
  std::string model;      // file
  std::string container;  // "onnx", "safetensors" or "swz"
  std::string producer;
  std::string features;                              // of the device
  std::vector<std::pair<std::string, int>> fusions;  // pass name -> how often it applied; of one plan
  std::vector<PartReport> parts;  // one plan; or those of regions, in the order of RegionalProgram::regions
  FormatCosts costs;
  std::optional<ProgramReport> program = {};  // nothing of one plan
};

// A table of the layers, the chosen kernel of each above the rejected ones, and totals. At most 160 columns.
std::string ReportText(const ModelReport& report);

// Everything, pictures included. Bytes and microseconds are plain numbers; keys only ever get added.
nlohmann::ordered_json ReportObject(const ModelReport& report);

// The object without its pictures, indented, with a newline at its end.
std::string ReportJson(const ModelReport& report);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_
