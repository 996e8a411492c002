// The first half of cutting a section out of a graph: all of its nodes are read, whether they are understood or not,
// and get a level (section.h). Internal to the recogniser.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_SECTION_WALK_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_SECTION_WALK_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model_loader/sequences/context.h"
#include "model_loader/sequences/section.h"

namespace swizzle::sequences {

// Used once; refers to its arguments.
class SectionWalk {
 public:
  // What is made of a node.
  enum class Reading : uint8_t {
    kUnknown,   // it is not understood
    kConstant,  // its results are the same in every run
    kShapes,    // its results go by the batch and the length alone
    kTokens
  };

  SectionWalk(Graph& graph, const SectionSource& source);

  // An error where a vital node is not understood.
  Status Run();

  Context& context() { return context_; }
  Reading ReadingOf(size_t node) const { return readings_[node]; }
  int NodeLevel(size_t node) const { return node_levels_[node]; }
  // The input of the canonical graph that stands for a value where sections of this level begin with it, or kNoValue.
  int BeginOf(int value, int level) const;
  // What sections of this level may begin with, by the inputs of the canonical graph that stand for it.
  std::map<int, int> BeginsOf(int level) const;
  // The nodes of each level that make attention.
  const std::map<int, std::set<size_t>>& attention() const { return attention_; }

 private:
  static constexpr int kNoLevel = -1;

  // A value as its other readers know it.
  struct Lent {
    int value;
    int level;
    Form form;
  };

  int& LevelOf(int value) { return levels_[static_cast<size_t>(value)]; }
  // From now on the value is read as what a section begins with.
  void Begin(int value);
  Status Read(size_t index);
  StatusOr<Form> Interpreted(size_t index, int level);
  // The level of the node: the highest of what it reads.
  int LevelOfInputs(const Node& node);
  // Has the node read values of lower levels as what a section of its level begins with, where it may.
  std::vector<Lent> LendToLevel(const Node& node, int level);
  // Has a Shape read what is not understood, where its size is known up to the batch and the length.
  std::vector<Lent> LendSizes(const Node& node);
  void TakeBack(std::vector<Lent> lent);
  bool HasOneLevel(const Node& node, int level);
  // The node is outside of all sections: the next may begin with what it makes.
  void Leave(const Node& node, int level, const Status& why);
  void NoteAttention(size_t index, int level, size_t made);
  void TakeConstants(const Node& node);
  // Elements go once no node reads them any more, so that none is held twice for long.
  void FreeConstants(const Node& node);

  Graph& graph_;
  const SectionSource& source_;
  Context context_;
  std::vector<int> reads_;   // by value: still to come
  std::vector<int> levels_;  // by value
  std::vector<Reading> readings_;
  std::vector<int> node_levels_;
  std::map<std::pair<int, int>, int> begins_;  // by value and level
  std::map<int, std::set<size_t>> attention_;
  int64_t held_ = 0;  // elements of the constants that were read
};

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_SECTION_WALK_H_
