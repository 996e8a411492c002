#include "model_loader/regions/free_sizes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <variant>

#include "model_loader/graph/shape_flow.h"
#include "model_loader/interpreter/run/refusal.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using interpreter::Port;

// For what follows the sizes that are tried first; a run that has begun goes on.
constexpr std::chrono::seconds kSearchTime(5);
constexpr int kMostRounds = 64;  // each of which leads further
constexpr size_t kMostRefused = 16;
constexpr int64_t kMostElements = int64_t{1} << 26;  // of an input

// Where nothing leads further: lengths that windows over sound and the like need.
constexpr int64_t kLargeSizes[] = {512, 1024, 2048, 4096, 16384, 65536};

// What exporters write for dimensions of which they know no name.
constexpr std::string_view kNoNames[] = {"-1", "?", "None", "none", "null", "unknown"};

// Values that depend on elements of inputs.
std::set<int> WithElements(const Graph& graph) {
  std::set<int> values(graph.inputs.begin(), graph.inputs.end());
  for (const Node& node : graph.nodes) {
    const auto depends = [&](int input) { return values.contains(input); };
    if (node.op == "Shape" || node.op == "Size" || !std::ranges::any_of(node.inputs, depends)) continue;
    values.insert(node.outputs.begin(), node.outputs.end());
    values.erase(kNoValue);
  }
  return values;
}

int64_t CeilOfRatio(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0); }

int64_t ElementsOf(const Shape& shape) {
  const StatusOr<int64_t> count = ElementCount(shape);
  return count.ok() ? *count : 0;
}

bool IsOfNumbers(const Array& array) { return !array.IsLeftOut() && !array.IsSequence() && !array.HasStrings(); }

bool HasGraphs(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const auto& attribute) {
    return std::holds_alternative<std::shared_ptr<const Body>>(attribute.second);
  });
}

constexpr int64_t kKeptBytes = int64_t{1} << 16;

// In place of a large value, whose elements say nothing here.
Array WithoutElements(Array array) {
  static const std::shared_ptr<std::byte[]> nothing(new std::byte[1]);
  array.data = nothing;
  return array;
}

bool HaveSameElements(const Array& a, const Array& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.bytes() == b.bytes() && a.bytes() <= kKeptBytes &&
         std::memcmp(a.data.get(), b.data.get(), static_cast<size_t>(a.bytes())) == 0;
}

}  // namespace

std::set<int> ConstantValues(const interpreter::Program& program) {
  std::set<int> values;
  for (const auto& constant : program.constants()) values.insert(constant.first);
  for (const Node& node : program.graph().nodes) {
    const auto known = [&](int value) { return value == kNoValue || values.contains(value); };
    if (std::ranges::all_of(node.inputs, known)) values.insert(node.outputs.begin(), node.outputs.end());
  }
  values.erase(kNoValue);
  return values;
}

std::vector<FreeDimension> FreeDimensionsOf(const std::vector<Port>& inputs) {
  std::vector<FreeDimension> dimensions;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].shape->size(); ++d) {
      if ((*inputs[i].shape)[d] >= 0) continue;
      std::string name = d < inputs[i].axes.size() ? inputs[i].axes[d] : "";
      if (std::ranges::find(kNoNames, name) != std::end(kNoNames)) name.clear();
      const auto same = std::ranges::find_if(dimensions, [&](const FreeDimension& other) {
        return other.name == name && (!name.empty() || (d == 0 && other.counts_rows));
      });
      FreeDimension& dimension = same == dimensions.end() ? dimensions.emplace_back(FreeDimension{name, {}}) : *same;
      dimension.counts_rows = d == 0 && (dimension.places.empty() || dimension.counts_rows);
      dimension.places.emplace_back(i, d);
    }
  }
  return dimensions;
}

std::vector<Shape> ShapesOf(const std::vector<Port>& inputs, const std::vector<FreeDimension>& dimensions,
                            const std::vector<int64_t>& sizes) {
  std::vector<Shape> shapes;
  for (const Port& input : inputs) shapes.push_back(*input.shape);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    for (const auto& [input, axis] : dimensions[i].places) shapes[input][axis] = sizes[i];
  }
  return shapes;
}

StatusOr<std::vector<TensorView>> FilledInputs(const interpreter::Program& program, const RunInputs& inputs,
                                               const interpreter::Limits& limits,
                                               std::vector<std::vector<std::byte>>& held) {
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.shapes.size(); ++i) {
    const Port& port = program.inputs()[i];
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(inputs.shapes[i]));
    if (elements > limits.max_array_bytes) return InvalidArgument("input '", port.name, "' is too large");
    const size_t bytes = *port.dtype == DType::kString ? sizeof(uint32_t) : ElementBytes(*port.dtype);  // empty ones
    std::vector<std::byte>& filled = held.emplace_back(static_cast<size_t>(elements) * bytes);
    views.push_back({*port.dtype, inputs.shapes[i], {}});
    if (inputs.element == 0) continue;
    VisitElementType(*port.dtype, [&]<typename T>(T) {
      const T one = Narrowed<T>(int64_t{1});
      for (size_t at = 0; at < filled.size(); at += sizeof(T)) std::memcpy(filled.data() + at, &one, sizeof(T));
    });
  }
  for (size_t i = 0; i < views.size(); ++i) views[i].bytes = held[held.size() - views.size() + i];
  return views;
}

SizeSearch::SizeSearch(const interpreter::Program& program, Stream& stream, const interpreter::Limits& limits,
                       const SampleShapes& samples, RunOn run)
    : program_(program),
      stream_(stream),
      limits_(limits),
      run_(std::move(run)),
      samples_(samples),
      dimensions_(FreeDimensionsOf(program.inputs())),
      constants_(ConstantValues(program)),
      elements_(WithElements(program.graph())),
      shapes_follow_(ShapesFollowShapes(program.graph())) {}

SizeSearch::Sizes SizeSearch::Uniform(int64_t rows, int64_t size) const {
  Sizes sizes;
  for (const FreeDimension& dimension : dimensions_) sizes.push_back(dimension.counts_rows ? rows : size);
  return sizes;
}

std::vector<SizeSearch::Sizes> SizeSearch::Sampled(int64_t rows) const {
  std::vector<Sizes> sampled;
  for (const auto& shapes : samples_) {
    const auto size_at = [&](const std::pair<size_t, size_t>& place) -> int64_t {
      const Port& input = program_.inputs()[place.first];
      const auto shape = shapes.find(input.name);
      return shape == shapes.end() || shape->second.size() != input.shape->size() ? -1 : shape->second[place.second];
    };
    Sizes sizes;
    for (const FreeDimension& dimension : dimensions_) {
      const int64_t size = dimension.counts_rows ? rows : size_at(dimension.places[0]);
      const auto agrees = [&](const auto& place) { return dimension.counts_rows || size_at(place) == size; };
      sizes.push_back(std::ranges::all_of(dimension.places, agrees) ? size : -1);
    }
    if (IsAllowed(sizes)) sampled.push_back(std::move(sizes));
  }
  return sampled;
}

RunInputs SizeSearch::InputsOf(const Sizes& sizes, int element) const {
  return {ShapesOf(program_.inputs(), dimensions_, sizes), element};
}

bool SizeSearch::IsAllowed(const Sizes& sizes) const {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || (found_ && sizes[i] == found_->sizes[i])) return false;
  }
  return std::ranges::all_of(InputsOf(sizes, 0).shapes, [](const Shape& shape) {
    const StatusOr<int64_t> elements = ElementCount(shape);
    return elements.ok() && *elements <= kMostElements;
  });
}

bool SizeSearch::Runs(const Sizes& sizes, int element) {
  const bool is_first = tried_.empty();
  if (!is_first && (!IsAllowed(sizes) || std::chrono::steady_clock::now() > until_)) return false;
  if (!tried_.emplace(sizes, element).second) return false;
  last_ = {sizes, element, run_(InputsOf(sizes, element))};
  const Status& status = last_.end.status;
  if (status.ok()) return true;
  // What grew beyond a limit leads nowhere, however far it came.
  const bool grew = status.code() == StatusCode::kResourceExhausted;
  const bool all_grew = !refused_.empty() && refused_[0].end.status.code() == StatusCode::kResourceExhausted;
  if (grew && !refused_.empty()) return false;
  if (all_grew || last_.end.node > furthest()) refused_.clear();
  if ((refused_.empty() || last_.end.node == furthest()) && refused_.size() < kMostRefused) {
    refused_.push_back(last_);
    for (size_t i = 0; i < last_.end.given.size(); ++i) {
      Array& given = refused_.back().end.given[i];
      const int value = program_.graph().nodes[static_cast<size_t>(last_.end.node)].inputs[i];
      const bool is_large = IsOfNumbers(given) && given.bytes() > kKeptBytes;
      if (is_large && !constants_.contains(value)) given = WithoutElements(std::move(given));
    }
  }
  last_.end.given.clear();
  return false;
}

bool SizeSearch::RunsOnAny(const std::vector<Sizes>& sizes, int element) {
  return std::ranges::any_of(sizes, [&](const Sizes& one) { return Runs(one, element); });
}

StatusOr<RunInputs> SizeSearch::Find() {
  until_ = std::chrono::steady_clock::now() + kSearchTime;
  const auto found = [&] {
    found_ = last_;
    return InputsOf(last_.sizes, last_.element);
  };
  if (RunsOnAny(Sampled(kSurveyedRows), 0)) return found();
  for (const int64_t size : kFreeSizes) {
    if (Runs(Uniform(kSurveyedRows, size), 0)) return found();
    if (last_.end.node >= 0 && ReadsConstants(last_.end.node)) return Refusal();
  }
  for (int element = 0; element < 2; ++element) {
    if (element == 1 && Runs(refused_.front().sizes, element)) return found();
    if (IsCertain(refused_.front())) return Refusal();
    if (last_.end.status.ok()) return found();  // it was tried on the way
    if (Follow(element)) return found();
  }
  for (const int64_t size : kLargeSizes) {
    if (Runs(Uniform(kSurveyedRows, size), 0) || Follow(0)) return found();
  }
  return Refusal();
}

StatusOr<RunInputs> SizeSearch::FindOther() {
  until_ = std::chrono::steady_clock::now() + kSearchTime;
  tried_.clear();
  refused_.clear();
  tried_.emplace(found_->sizes, found_->element);
  std::vector<Sizes> firsts = Sampled(kOtherSurveyedRows);
  for (const int64_t size : kFreeSizes) firsts.push_back(Uniform(kOtherSurveyedRows, size));
  for (const int64_t times : {2, 3}) {  // and as in the other run
    Sizes scaled = found_->sizes;
    for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = scaled[i] * times + (times == 3 ? 1 : 0);
    firsts.push_back(scaled);
  }
  if (RunsOnAny(firsts, found_->element) || Follow(found_->element)) return InputsOf(last_.sizes, last_.element);
  return refused_.empty() ? Unimplemented("there is no other size") : refused_.front().end.status;
}

bool SizeSearch::Follow(int element) {
  for (int round = 0; round < kMostRounds; ++round) {
    const auto started = std::ranges::find(refused_, element, &Try::element);
    if (started == refused_.end() || started->end.node < 0) return false;
    const Try refused = *started;
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      for (const int64_t more : {refused.sizes[d], int64_t{1}}) {
        Sizes moved = refused.sizes;
        moved[d] += more;
        if (MovedIn(d, refused) == nullptr && Runs(moved, element)) return true;
      }
    }
    const auto leads_further = [&] { return furthest() > refused.end.node; };
    if (leads_further()) continue;
    for (const Sizes& sizes : Proposals(refused)) {
      if (Runs(sizes, element)) return true;
      if (leads_further()) break;
    }
    if (!leads_further()) return false;
  }
  return false;
}

const SizeSearch::Try* SizeSearch::MovedIn(size_t dimension, const Try& refused) const {
  const auto moved = std::ranges::find_if(refused_, [&](const Try& other) {
    Sizes sizes = other.sizes;
    if (sizes[dimension] == refused.sizes[dimension]) return false;
    sizes[dimension] = refused.sizes[dimension];
    return sizes == refused.sizes && other.element == refused.element;
  });
  return moved == refused_.end() ? nullptr : &*moved;
}

std::vector<SizeSearch::Sizes> SizeSearch::Proposals(const Try& refused) {
  std::vector<std::set<int64_t>> proposed(dimensions_.size());
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    if (const Try* const moved = MovedIn(d, refused)) Propose(refused, *moved, d, proposed[d]);
  }
  std::set<Sizes> proposals;
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    for (const int64_t size : proposed[d]) {
      Sizes sizes = refused.sizes;
      sizes[d] = size;
      proposals.insert(sizes);
      // Windows reach over two dimensions, and two inputs over the same.
      for (size_t other = 0; other < dimensions_.size(); ++other) {
        if (!proposed[other].empty() && !dimensions_[other].counts_rows) sizes[other] = size;
      }
      proposals.insert(std::move(sizes));
    }
  }
  std::vector<Sizes> ordered(proposals.begin(), proposals.end());
  // Dimensions of 1 broadcast to what they are not meant for, and come last.
  const auto place = [](const Sizes& sizes) {
    return std::pair(std::ranges::find(sizes, 1) != sizes.end(),
                     std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  };
  std::ranges::stable_sort(ordered, {}, place);
  return ordered;
}

void SizeSearch::Propose(const Try& refused, const Try& moved, size_t dimension, std::set<int64_t>& proposed) const {
  constexpr int64_t kMostSize = int64_t{1} << 20;
  const Node& node = program_.graph().nodes[static_cast<size_t>(refused.end.node)];
  const std::vector<int64_t> wanted = interpreter::SizesAround(node, refused.end.given);
  const int64_t size = refused.sizes[dimension], step = moved.sizes[dimension] - size;
  const auto propose = [&](int64_t now, int64_t then) {
    if (now == then || now < 1) return;
    for (const int64_t want : wanted) {
      for (const int64_t target : {want, CeilOfRatio(now, want) * want}) {
        if (target > kMostSize) continue;
        const int64_t solved = size + CeilOfRatio((target - now) * step, then - now);
        if (solved >= 1 && solved <= kMostSize && solved != size) proposed.insert(solved);
      }
    }
  };
  for (size_t i = 0; i < refused.end.given.size(); ++i) {
    const Shape &now = refused.end.given[i].shape, &then = moved.end.given[i].shape;
    if (now.size() != then.size()) continue;
    for (size_t d = 0; d < now.size(); ++d) propose(now[d], then[d]);
    propose(ElementsOf(now), ElementsOf(then));
  }
}

Status SizeSearch::Refusal() {
  const Try refused = refused_.front();
  const Status& said = refused.end.status;
  if (IsCertain(refused)) return interpreter::NoRequestHelps(said);
  // Others may come further.
  const StatusCode code = said.code() == StatusCode::kFailedPrecondition ? StatusCode::kInvalidArgument : said.code();
  return MakeError(code, "it runs on inputs of no size that was tried: ", std::string(said.message()));
}

bool SizeSearch::ReadsConstants(int node) const {
  return std::ranges::all_of(program_.graph().nodes[static_cast<size_t>(node)].inputs,
                             [&](int value) { return value == kNoValue || constants_.contains(value); });
}

bool SizeSearch::IsFreeAt(size_t input, size_t axis, const Try& refused) const {
  const Shape& shape = refused.end.given[input].shape;
  return std::ranges::any_of(refused_, [&](const Try& other) {
    const Shape& others = other.end.given[input].shape;
    return others.size() != shape.size() || others[axis] != shape[axis];
  });
}

bool SizeSearch::IsCertain(const Try& held) {
  if (held.end.node < 0) return held.end.status.code() == StatusCode::kFailedPrecondition;
  const Try refused = held;  // which another run may take out of refused_
  const Node& node = program_.graph().nodes[static_cast<size_t>(refused.end.node)];
  const StatusCode code = refused.end.status.code();
  if (code == StatusCode::kFailedPrecondition) return node.op != "If" || constants_.contains(node.Input(0));
  if (HasGraphs(node) || (code != StatusCode::kInvalidArgument && code != StatusCode::kUnimplemented)) return false;
  Sizes others = refused.sizes;
  for (int64_t& size : others) size += size > 3 ? size : 1;
  if (Runs(others, refused.element) || furthest() != refused.end.node) return false;
  const auto differs = [&](const Try& other) {
    return std::ranges::equal(other.sizes, refused.sizes, std::not_equal_to<>());
  };
  // Whether what no run changed is so in all; of shapes that go by elements that is known of inputs alone.
  const bool saw_others = dimensions_.empty() || std::ranges::any_of(refused_, differs);
  const auto is_seen = [&](int value) {
    return saw_others &&
           (shapes_follow_ || std::ranges::find(program_.graph().inputs, value) != program_.graph().inputs.end());
  };
  std::vector<interpreter::Operand> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Array& given = refused.end.given[i];
    const int value = node.inputs[i];
    interpreter::Operand operand{given, std::vector<bool>(given.shape.size(), false)};
    if (value != kNoValue && !constants_.contains(value)) {
      if (!IsOfNumbers(given) && !given.HasStrings()) return false;
      for (size_t d = 0; d < given.shape.size(); ++d) operand.free[d] = !is_seen(value) || IsFreeAt(i, d, refused);
      const bool may_differ = !shapes_follow_ || elements_.contains(value);
      operand.free_elements = may_differ || !std::ranges::all_of(refused_, [&](const Try& other) {
                                return HaveSameElements(other.end.given[i], given);
                              });
    }
    operands.push_back(std::move(operand));
  }
  const std::shared_ptr<interpreter::Memory> memory = interpreter::Memory::New(limits_);
  return interpreter::RefusesAlways(node, operands, *memory, [&](std::span<const Array> tried) {
    return program_.Compute(static_cast<size_t>(refused.end.node), tried, *memory, stream_).status();
  });
}

}  // namespace swizzle::regions
