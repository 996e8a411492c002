// Where the rows of a batch lie in what a node makes: the rules behind batch_proof.h, one for each RowRule of the table
// of operators. How large results are says the walk (symbolic_walk.h).
#ifndef SWIZZLE_MODEL_LOADER_SHAPES_BATCH_ROWS_H_
#define SWIZZLE_MODEL_LOADER_SHAPES_BATCH_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model_loader/graph/operator_table.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle {

// What is known of a value's elements, of batches of every size.
struct Standing {
  enum class Kind : uint8_t {
    kUnknown,
    kShared,  // they are the same for every batch
    kRows,    // each request's lie together along dimension `axis`, as many slices as that has times the batch, and
              // depend on that request alone; with `outer`, the dimension has all of that so many times, one behind
              // the other
    kSizes,   // the walk knows each of them, and some vary with the batch
  };

  Kind kind = Kind::kUnknown;
  size_t axis = 0;    // of kRows
  int64_t outer = 1;  // likewise

  bool operator==(const Standing&) const = default;
};

// A node with what is known of its inputs, none of which is kUnknown. Refers to what it is made of.
class BatchNode : public SymbolicNode {
 public:
  BatchNode(const SymbolicNode& node, const Symbols& symbols, const std::vector<Standing>& standings)
      : SymbolicNode(node), symbols_(symbols), standings_(standings) {}

  const Standing& StandingOf(size_t i) const;
  bool IsShared(size_t i) const { return StandingOf(i).kind == Standing::Kind::kShared; }
  // Whether all inputs from `first` on are.
  bool AreShared(size_t first) const;
  // The dimension of the rows, if the input has any.
  std::optional<size_t> Rows(size_t i) const;
  // How often that dimension has them, where all inputs that have rows have them as often; else nothing.
  std::optional<int64_t> Outer() const;
  // REQUIRES: the input has a known shape of that rank.
  const SymbolicInt& SizeOf(size_t i, size_t axis) const { return (*ShapeOf(i))[axis]; }
  // Whether numbers of the list that is input `i` are known, and at most that at `place` varies with the batch.
  bool VariesAtMostAt(size_t i, size_t place) const;
  bool Varies(const SymbolicInt& number) const { return symbols_.Varies(number); }

 private:
  const Symbols& symbols_;
  const std::vector<Standing>& standings_;
};

// Where rows lie in a result.
struct RowsAt {
  size_t axis;
  size_t rank;
  std::optional<SymbolicInt> size = {};  // of that dimension; nothing: as the walk says
  int64_t outer = 1;                     // as Standing has it
};

// RowsOfResult says where one of the node's outputs has them; nothing where it is not certain that a request's are
// computed of that request's alone.
// REQUIRES: some input is not shared.
std::optional<RowsAt> RowsOfResult(const BatchNode& node, RowRule rule, size_t output);

// MovedRows does so for operators that move elements.
std::optional<RowsAt> MovedRows(const BatchNode& node);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SHAPES_BATCH_ROWS_H_
