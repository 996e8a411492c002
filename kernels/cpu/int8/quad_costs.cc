#include "kernels/cpu/int8/quad_costs.h"

#include <algorithm>
#include <span>

namespace swizzle::cpu {
namespace {

// How long a quad takes beside others, for all rows of a strip: a Zen 4 core's clocks.
struct QuadCost {
  QuadShape shape;
  double clocks;
};
constexpr QuadCost kRowQuads[] = {{{1, false}, 7}};
constexpr QuadCost kPairedQuads[] = {{{.pairs = true}, 7}};
constexpr QuadCost kVectorQuads[] = {{{2, false}, 10}, {{4, false}, 18}};
constexpr QuadCost kBlockQuads[] = {{{1, true}, 5}, {{2, true}, 9}, {{4, true}, 17}};
constexpr double kWorthIt = 0.9;  // of what rows take

std::span<const QuadCost> CostsOf(QuadKind kind) {
  switch (kind) {
    case QuadKind::kPairs:
      return kPairedQuads;
    case QuadKind::kVectors:
      return kVectorQuads;
    case QuadKind::kBlocks:
      return kBlockQuads;
    case QuadKind::kRows:
      break;
  }
  return kRowQuads;
}

double ClocksOf(const ByteWeight& weight, const QuadCost& cost) {
  return static_cast<double>(CountQuads(weight, cost.shape)) * cost.clocks;
}

QuadCost Fastest(const ByteWeight& weight, QuadKind kind) {
  return *std::ranges::min_element(CostsOf(kind), {}, [&](const QuadCost& cost) { return ClocksOf(weight, cost); });
}

}  // namespace

QuadShape FastestShape(const ByteWeight& weight, QuadKind kind) {
  const std::span<const QuadCost> costs = CostsOf(kind);
  return costs.size() == 1 ? costs.front().shape : Fastest(weight, kind).shape;
}

bool AreFasterThanRows(const ByteWeight& weight, QuadKind kind) {
  return ClocksOf(weight, Fastest(weight, kind)) < kWorthIt * ClocksOf(weight, kRowQuads[0]);
}

}  // namespace swizzle::cpu
