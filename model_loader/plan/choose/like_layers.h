// Layers that differ only in where the zeros of their weights stand: networks repeat their blocks.
//
// There is rarely time to measure every layer. So one of a kind is measured before a second one, and what was not
// measured takes the times of one that was, which are nearer to its own than any estimate.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LIKE_LAYERS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LIKE_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/format/weight.h"
#include "kernels/operator/problem.h"
#include "model_loader/plan/choose/candidates.h"

namespace swizzle {

// What a layer is to have in common with one whose times it takes.
struct LayerLikeness {
  std::string shape;     // of what it computes, and of its weight, with the format
  int64_t nonzeros = 0;  // of a dense weight all: kernels compute its zeros, and to count them takes long
  std::optional<InputZeros> input_zeros = {};  // only of kernels that skip them
};

// `problem` at any one batch size; `weight` may be null.
LayerLikeness LikenessOf(const Problem& problem, const Weight* weight);

// Thread-compatible.
class LikeLayers {
 public:
  // Puts layers with the shape of an earlier one behind all others, those that are third behind the second, and so on.
  // `order` keeps its order else; `likeness` is by layer.
  static void PutRepeatsLast(const std::vector<LayerLikeness>& likeness, std::vector<size_t>& order);

  // `timed` are those of `offered`'s kernels that stayed in question when the layer had been measured.
  void Add(const LayerLikeness& likeness, std::vector<const Kernel*> offered, const std::vector<Candidate>& timed);

  // Gives the candidates the times of a layer of this shape, with a tenth more or fewer nonzeros at most, and takes
  // away those that were measured there and dropped, and, where the inputs' zeros differ, those that skip them. Whether
  // there is one that was offered all of their kernels; if not, nothing changes.
  bool TakeTimes(const LayerLikeness& likeness, std::vector<Candidate>& candidates) const;

 private:
  struct Timed {
    LayerLikeness likeness;
    std::vector<const Kernel*> offered;
    std::vector<Candidate> candidates;
  };
  std::multimap<std::string, Timed> by_shape_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_LIKE_LAYERS_H_
