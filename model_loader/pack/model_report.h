// What `inspect` prints, as text and as JSON. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/format/structure.h"
#include "model_loader/pack/format_costs.h"
#include "model_loader/pack/sparse_inputs.h"
#include "model_loader/pack/weight_picture.h"
#include "model_loader/plan/run/plan.h"
#include "nlohmann/json_fwd.hpp"

namespace swizzle::pack {

struct ModelReport {
  std::string model;      // file
  std::string container;  // "onnx" or "swz"
  std::string producer;
  std::string features;  // of the device
  int64_t max_batch = 0;
  int64_t arena_bytes = 0;
  std::vector<std::pair<std::string, int>> fusions;  // pass name -> how often it applied
  PlanReport plan;
  // Of the weight of each layer of the plan; as made where a layer has none.
  std::vector<Structure> structures;
  FormatCosts costs;
  std::vector<WeightPicture> pictures;  // none at all where nobody asked
  SparseInputs sparse_inputs;           // likewise
};

// A table of the layers, the chosen kernel of each above the rejected ones, and totals. At most 160 columns.
std::string ReportText(const ModelReport& report);

// Everything, pictures included. Bytes and microseconds are plain numbers; keys only ever get added.
nlohmann::ordered_json ReportObject(const ModelReport& report);

// The object without its pictures, indented, with a newline at its end.
std::string ReportJson(const ModelReport& report);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_
