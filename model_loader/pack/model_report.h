// What `inspect` prints, as text and as JSON. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/plan/plan.h"

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
};

// A table of the layers, the chosen kernel of each above the rejected ones, and totals. At most 160 columns.
std::string ReportText(const ModelReport& report);

// One object, indented, with a newline at its end. Bytes and microseconds are plain numbers; keys only ever get added.
std::string ReportJson(const ModelReport& report);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_MODEL_REPORT_H_
