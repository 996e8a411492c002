// Operators on images: pooling by norms, and images brought to a size.
#include "model_loader/expansions/operators.h"

namespace swizzle::expansions {
namespace {

// |x|^p.
int Powers(Site& site, int x, int64_t p) {
  const int magnitude = site.Make("Abs", {x});
  return p == 1 ? magnitude : site.Make("Pow", {magnitude, site.Number(static_cast<double>(p), x)});
}

int Root(Site& site, int x, int64_t p) {
  return p == 1 ? x : site.Make("Pow", {x, site.Number(1.0 / static_cast<double>(p), x)});
}

StatusOr<int64_t> NormOf(const Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t p, site.Int("p", 2));
  return p >= 1 ? StatusOr<int64_t>(p) : InvalidArgument("its p is ", p, "; it has to be 1 or more");
}

}  // namespace

// A mean that counts its padding is a sum over the window's size. Of a window that ceil_mode has begin in the image and
// end behind its padding, it is not.
Status LpPool(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t p, NormOf(site));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t rounds_up, site.Int("ceil_mode", 0));
  if (rounds_up != 0) return Unimplemented("its ceil_mode is not supported");
  Attributes attributes = site.node().attributes;
  const auto kernel = attributes.find("kernel_shape");
  const auto* const extents = kernel != attributes.end() ? std::get_if<std::vector<int64_t>>(&kernel->second) : nullptr;
  if (extents == nullptr) return InvalidArgument("it has no kernel_shape");
  double window = 1;
  for (const int64_t extent : *extents) window *= static_cast<double>(extent);
  attributes.erase("p");
  attributes.erase("ceil_mode");
  attributes["count_include_pad"] = int64_t{1};
  const int mean = site.Make("AveragePool", {Powers(site, site.In(0), p)}, std::move(attributes));
  site.Result(0, Root(site, site.Scaled(mean, window), p));
  return {};
}

Status GlobalLpPool(Site& site) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t p, NormOf(site));
  const std::optional<size_t> rank = site.RankOf(site.In(0));
  if (!rank) {
    return Unimplemented("the rank of its input is not known: run onnx.shape_inference.infer_shapes on the model");
  }
  int sum = Powers(site, site.In(0), p);
  for (int64_t axis = 2; axis < static_cast<int64_t>(*rank); ++axis) sum = site.ReduceSum(sum, axis, /*keeps=*/true);
  site.Result(0, Root(site, sum, p));
  return {};
}

// What is too long loses as much at both ends, or one more at the end; what is too short gains likewise.
Status CenterCropPad(Site& site) {
  const int x = site.In(0), target = site.In(1);
  const auto found = site.node().attributes.find("axes");
  const auto* const axes =
      found != site.node().attributes.end() ? std::get_if<std::vector<int64_t>>(&found->second) : nullptr;
  const int chosen = axes != nullptr ? site.Wholes(*axes) : kNoValue;
  int own = site.Make("Shape", {x});
  if (chosen != kNoValue) own = site.Make("Gather", {own, chosen}, {{"axis", int64_t{0}}});
  const int zero = site.Whole(0), two = site.Whole(2);
  const int kept = site.Make("Min", {own, target});
  const int begin = site.Make("Div", {site.Make("Sub", {own, kept}), two});
  std::vector<int> slice = {x, begin, site.Make("Add", {begin, kept})};
  if (chosen != kNoValue) slice.push_back(chosen);
  const int cropped = site.Make("Slice", std::move(slice));
  const int missing = site.Make("Max", {site.Make("Sub", {target, own}), zero});
  const int before = site.Make("Div", {missing, two});
  const int pads = site.Make("Concat", {before, site.Make("Sub", {missing, before})}, {{"axis", int64_t{0}}});
  std::vector<int> pad = {cropped, pads};
  if (chosen != kNoValue) pad.insert(pad.end(), {kNoValue, chosen});
  site.Result(0, site.Make("Pad", std::move(pad)));
  return {};
}

}  // namespace swizzle::expansions
