// A section of a graph that computes token sequences out of activations that come from elsewhere: the encoder behind a
// vision model's patches or a speech model's convolutions. Its nodes are read as those of a whole graph of token
// sequences are (walk.h), and what is not understood is left outside: where such a node makes tokens, a section begins.
//
// No way leads out of a section and back into it: each value has a level, which counts on the longest way to it how
// often sections begin, and a section is of one level. What comes back by way of sizes is left out.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_SECTION_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_SECTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/sequences/whole.h"

namespace swizzle {

// What the recogniser asks about the graph around a section. Single-owner; outlives the call.
class SectionSource {
 public:
  static constexpr int kOutside = -1;

  virtual ~SectionSource() = default;
  // The node that makes the value, or kOutside.
  virtual int MakerOf(int value) const = 0;
  // Nodes, once for each time they read it, and kOutside for an output of the graph.
  virtual std::span<const int> ReadersOf(int value) const = 0;
  // Whether the value is the same in every run.
  virtual bool IsKnown(int value) const = 0;
  // Its elements, which are copied only when a node is read that reads them. REQUIRES: IsKnown.
  virtual Tensor Elements(int value) const = 0;
  // The channels of an activation [batch, length, channels] of FP32 that a section may begin with; else 0.
  virtual int64_t ChannelsOf(int value) const = 0;
  // The dimensions that a fixed length is in such an activation where these are several, [height, width]; else empty.
  virtual Shape PlacesOf(int) const { return {}; }
  // The sizes of any value, up to the batch and the length of the sequences; nothing where they are not known so far.
  virtual std::optional<Wholes> SizesOf(int) const { return std::nullopt; }
  // Whether its elements are FP32.
  virtual bool IsReal(int value) const = 0;
  // Whether a section may hold the node.
  virtual bool MayHold(size_t node) const = 0;
  // Whether nothing is worth a section if this node is not understood, so that the others need not be read.
  virtual bool IsVital(size_t node) const = 0;
};

struct SequenceSection {
  Graph graph;                       // of canonical operators (graph/operators.h), with `sequences`
  std::vector<int> nodes;            // of the graph that was read, in order
  std::vector<int> inputs, outputs;  // its values; those of `graph`, in the same order, stand for them
};

// The section with the most attention of a graph whose `sequences` say the batch and the length. Its constants need not
// be there: the source has them. UNIMPLEMENTED if no section holds attention of two layers; the message names the first
// vital node that was not understood, and why. The graph that was read is of no use afterwards.
StatusOr<SequenceSection> RecogniseSection(Graph& graph, const SectionSource& source);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_SECTION_H_
