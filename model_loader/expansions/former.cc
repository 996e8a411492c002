// Operators that com.microsoft had before the standard took them over, which differ in little or nothing.
#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {

// GatherND, Pad, Trilu: as they are.
Status FormerTwin(Site& site) {
  site.Result(0, site.Make(site.node().op, site.node().inputs, site.node().attributes));
  return {};
}

Status ExpandDims(Site& site) {
  const auto axis = site.facts().WholesOf(site.In(1));
  if (!axis || axis->size() != 1) {
    // The standard's takes a list of axes.
    if (site.opset() < 13) return Unimplemented("its axis is computed, which models of opset 13 may alone");
    const int list = site.Reshape(site.Cast(site.In(1), DType::kInt64), {1});
    site.Result(0, site.Make("Unsqueeze", {site.In(0), list}));
    return {};
  }
  site.Result(0, site.Unsqueeze(site.In(0), *axis));
  return {};
}

// Its modes have their names of opset 16, which opset 20 gave others.
Status FormerGridSample(Site& site) {
  Attributes attributes = site.node().attributes;
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, site.Text("mode", "bilinear"));
  if (site.opset() >= 20 && mode != "nearest") {
    attributes["mode"] = std::string(mode == "bicubic" ? "cubic" : "linear");
  }
  site.Result(0, site.Make("GridSample", site.node().inputs, std::move(attributes)));
  return {};
}

// Its step may be left out.
Status FormerRange(Site& site) {
  std::vector<int> inputs = site.node().inputs;
  if (!site.Has(2)) {
    inputs.resize(2);
    inputs.push_back(site.Number(1.0, site.In(0)));
  }
  site.Result(0, site.Make("Range", std::move(inputs)));
  return {};
}

}  // namespace swizzle::expansions
