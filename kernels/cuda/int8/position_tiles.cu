#include <utility>
#include <vector>

#include "kernels/cuda/int8/dense_conv_bytes.h"
#include "kernels/cuda/int8/dense_conv_bytes_wgmma.cuh"
#include "kernels/cuda/int8/position_bytes.h"
#include "kernels/cuda/int8/position_ends.cuh"
#include "kernels/cuda/int8/quantise_positions.h"

namespace swizzle::cuda {
namespace {

class PositionTiles final : public PackedWeight {
 public:
  PositionTiles(ByteTiles tiles, PositionEnds ends) : tiles_(std::move(tiles)), ends_(std::move(ends)) {}
  size_t bytes() const override { return tiles_.bytes() + ends_.bytes(); }
  const ByteTiles& tiles() const { return tiles_; }
  const PositionEnds& ends() const { return ends_; }

 private:
  const ByteTiles tiles_;
  const PositionEnds ends_;
};

}  // namespace

bool AcceptsPositionBytes(const Problem& problem) {
  constexpr int64_t kMost = (int64_t{1} << 31) - (int64_t{1} << 16);
  const PositionLines lines(problem);
  return problem.window().IsPointwise() && CountsFit(problem) && lines.positions * lines.line < kMost;
}

size_t PositionLinesWorkspaceBytes(const Problem& problem) { return PositionLines(problem).bytes(); }

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionTiles(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const PositionWeight made, MakePositionWeight(weight));
  SWIZZLE_ASSIGN_OR_RETURN(ByteTiles tiles, ByteTiles::OfLines(made.bytes));
  SWIZZLE_ASSIGN_OR_RETURN(PositionEnds ends, PositionEnds::Make(made, 0));
  return std::make_unique<PositionTiles>(std::move(tiles), std::move(ends));
}

template <typename Shape>
void RunPositionTiles(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const PositionTiles&>(*args.weight);
  const PositionLines lines(*args.problem);
  const QuantisedPositions positions = lines.In(args.workspace.data());
  QueueQuantisedLines(args, lines, /*is_signed=*/false, positions, stream);
  DenseConvArgs conv = {};
  conv.input = positions.bytes;
  weight.tiles().NameIn(conv);
  conv.positions = static_cast<int32_t>(lines.positions);
  conv.rows = static_cast<int32_t>(args.problem->output.channels);
  conv.pieces = static_cast<int32_t>(lines.line / kConvPiece);
  conv.groups = CeilDiv(conv.rows, kConvGroup);
  conv.direct = true;
  conv.line = static_cast<int32_t>(lines.line);
  conv.height = conv.width = 1;
  WithPositionStore(args, weight.ends(), positions.steps, 0,
                    [&](const auto& store) { byte_wgmma::QueueTiles<Shape>(conv, store, QueueOf(stream)); });
}

template void RunPositionTiles<ByteTile128x128>(const KernelArgs&, Stream&);
template void RunPositionTiles<ByteTile128x64>(const KernelArgs&, Stream&);
template void RunPositionTiles<ByteTile64x64>(const KernelArgs&, Stream&);
template void RunPositionTiles<ByteTileShort>(const KernelArgs&, Stream&);
template void RunPositionTiles<ByteTileSplit>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda
