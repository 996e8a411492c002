// How the extents within a network follow from those of its inputs: learned from the same layers at two sizes, so that
// the network for a third one is arithmetic. It is what lowering would make where that goes by planes and lengths in no
// other way than is known here; who learns has seen to that.
#ifndef SWIZZLE_MODEL_LOADER_NETWORK_EXTENT_RULES_H_
#define SWIZZLE_MODEL_LOADER_NETWORK_EXTENT_RULES_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/semantics/window_axis.h"

namespace swizzle {

// Where a window's padding goes by the plane, as the model says it.
struct PaddingRule {
  AutoPad same = AutoPad::kExplicit;  // kSameUpper or kSameLower: outputs are ceil(input / stride)
  bool cut = false;                   // ceil_mode: the end, which has these, is padded for a window that it cuts off
  int32_t bottom = 0, right = 0;
};
using PaddingRules = std::map<std::string, PaddingRule>;  // by layer's name; the others' padding is given

// Value type.
class ExtentRules {
 public:
  // Nothing where the second does not follow from the first by such rules. Their weights may be gone.
  static std::optional<ExtentRules> Learn(const Network& first, const Network& second,
                                          const PaddingRules& paddings = {});

  // The network for rows of these dimensions, by input (NetworkPort::dims). `network` is the first, or has the same
  // layers at another size. Nothing where a dimension differs that did not between the two, or an extent has no value.
  std::optional<Network> Apply(const Network& network, std::span<const Shape> rows) const;

 private:
  // Channels, height and width.
  using Extents = std::array<int64_t, 3>;
  static constexpr int kByCount = -1, kFixed = -2;  // by the number of elements; always the same
  using Sources = std::vector<int>;                 // of dimensions: one of the input's extents, or one of these
  struct LayerRule {
    bool whole_height = false, whole_width = false;  // the window is the plane
    PaddingRule padding = {};
    Sources output = {};  // where neither the operator nor its attributes say it
  };

  static Extents Of(const NetworkValue& value) { return {value.channels, value.height, value.width}; }
  static bool LearnSources(std::span<const int64_t> first, std::span<const int64_t> second, const Extents& first_from,
                           const Extents& second_from, Sources& sources);
  static bool Fill(const Sources& sources, const Extents& from, int64_t elements, std::span<int64_t> dims);
  bool LearnLayer(const Network& first, const Network& second, size_t layer);
  bool ApplyLayer(const Network& before, size_t index, Network& network) const;
  bool SetWindow(const LayerRule& rule, const NetworkValue& in, Window& window) const;
  bool SetOutput(const Network& before, const LayerRule& rule, Layer& layer, Network& network) const;

  std::vector<LayerRule> layers_;
  std::vector<std::vector<bool>> varies_;  // by input, by dimension
  std::vector<Sources> outputs_;           // by output: its dimensions, of its value's extents
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_NETWORK_EXTENT_RULES_H_
