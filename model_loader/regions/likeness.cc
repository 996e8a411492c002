#include "model_loader/regions/likeness.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>

namespace swizzle::regions {
namespace {

std::string HashText(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return Concat(hash.high64, ".", hash.low64);
}

std::string ShapeOr(const std::optional<Shape>& shape) { return shape ? ShapeText(*shape) : "?"; }

// Of an attribute. A graph within a node is like itself alone.
std::string TextOf(const Attribute& attribute) {
  return std::visit(
      []<typename T>(const T& value) -> std::string {
        if constexpr (std::is_same_v<T, float>) {
          return Concat("f", std::bit_cast<uint32_t>(value));
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const Body>>) {
          return Concat("g", static_cast<const void*>(value.get()));
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return Concat(DTypeName(value.dtype), ShapeText(value.shape), HashText(value.bytes));
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return Concat("i", value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return Concat("s", value.size(), ":", value);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          std::string text = "S";
          for (const std::string& each : value) text += Concat(each.size(), ":", each);
          return text;
        } else {
          return Concat("n", value.size(), ":", HashText(std::as_bytes(std::span(value))));
        }
      },
      attribute);
}

}  // namespace

// Values by the place where the region meets them first.
class Likeness::Text {
 public:
  Text(Likeness& likeness, const Region& region)
      : of_(likeness), graph_(likeness.graph_), survey_(likeness.survey_), region_(region) {}

  std::string Run() {
    text_ = Concat("form ", static_cast<int>(region_.form));
    for (const int input : region_.inputs) {
      const auto index = static_cast<size_t>(input);
      text_ += Concat("\ninput ", DTypeName(survey_.dtypes[index]), ShapeOr(survey_.shapes[index]), " ",
                      ShapeOr(survey_.other_shapes[index]));
      places_.emplace(input, places_.size());
    }
    for (const int node : region_.nodes) AddNode(static_cast<size_t>(node));
    for (const int output : region_.outputs) {
      const auto index = static_cast<size_t>(output);
      text_ +=
          Concat("\noutput ", places_.at(output), DTypeName(survey_.dtypes[index]), ShapeOr(survey_.shapes[index]));
    }
    return std::move(text_);
  }

 private:
  void AddNode(size_t index) {
    const Node& node = graph_.nodes[index];
    text_ += Concat("\n", node.domain, ".", node.op);
    if (const Idiom* const idiom = survey_.IdiomOf(index)) AddIdiom(*idiom, static_cast<int>(index));
    AddAttributes(node.attributes);
    for (const int input : node.inputs) {
      IsByShape(node, input) ? AddShape(input) : AddInput(input);
    }
    text_ += Concat(" makes ", node.outputs.size());
    for (const int output : MadeValues(node, survey_)) {
      text_ += Concat(" ", std::ranges::find(node.outputs, output) - node.outputs.begin(), "=", places_.size());
      places_.emplace(output, places_.size());
    }
  }

  void AddIdiom(const Idiom& idiom, int node) {
    text_ += Concat(" of ", idiom.op, " ", std::ranges::find(idiom.nodes, node) - idiom.nodes.begin(), "/",
                    idiom.nodes.size());
    AddAttributes(idiom.attributes);
    for (const int constant : idiom.constants) AddInput(constant);
    if (const auto found = places_.find(idiom.input); found != places_.end()) text_ += Concat(" on ", found->second);
  }

  void AddAttributes(const std::map<std::string, Attribute>& attributes) {
    for (const auto& [name, attribute] : attributes) text_ += Concat(" ", name, "=", TextOf(attribute));
  }

  // A weight of whole numbers stays one in the network, whose kernels go by its scales.
  bool IsByShape(const Node& node, int value) const {
    if (of_.weights_ == Weights::kElements || !HasKnownWeight(node, survey_) || value != node.inputs[1]) return false;
    const int maker = survey_.MakerOf(value);
    return maker == Survey::kOutside || graph_.nodes[static_cast<size_t>(maker)].op != "DequantizeLinear";
  }

  void AddShape(int value) {
    const auto index = static_cast<size_t>(value);
    text_ += Concat(" weight ", DTypeName(survey_.dtypes[index]), ShapeOr(survey_.shapes[index]));
  }

  void AddInput(int value) {
    if (value == kNoValue) {
      text_ += " -";
    } else if (const auto found = places_.find(value); found != places_.end()) {
      text_ += Concat(" %", found->second);
    } else if (survey_.IsKnown(value)) {
      text_ += Concat(" ", of_.ContentOf(value));
      AddWholes(value);
    } else {
      text_ += Concat(" ?", value);
    }
  }

  // Whole numbers stay such in networks.
  void AddWholes(int value) {
    const int maker = survey_.MakerOf(value);
    if (maker == Survey::kOutside) return;
    const Node& node = graph_.nodes[static_cast<size_t>(maker)];
    if (node.op != "DequantizeLinear" || !node.domain.empty()) return;
    text_ += " of";
    AddAttributes(node.attributes);
    for (const int input : node.inputs) text_ += Concat(" ", Content(input));
  }

  std::string Content(int value) {
    if (value == kNoValue) return "-";
    return survey_.IsKnown(value) ? of_.ContentOf(value) : Concat("?", value);
  }

  Likeness& of_;
  const Graph& graph_;
  const Survey& survey_;
  const Region& region_;
  std::map<int, size_t> places_;  // by value
  std::string text_;
};

std::string Likeness::Of(const Region& region) { return Text(*this, region).Run(); }

const std::string& Likeness::ContentOf(int value) {
  const auto [content, is_new] = contents_.try_emplace(value);
  if (is_new) {
    const interpreter::Array& array = survey_.known.at(value);
    const bool opaque = array.IsSequence() || array.HasStrings();
    content->second =
        opaque ? Concat("?", value) : Concat(DTypeName(array.dtype), ShapeText(array.shape), HashText(array.AsBytes()));
  }
  return content->second;
}

}  // namespace swizzle::regions
