#include "kernels/cpu/int8/conv_pieces.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

// Channels that a library's loops take at once.
constexpr int64_t kChannelBlock = 64;
// Pieces of one image for each thread, so that none has to wait for a slow one.
constexpr int64_t kPiecesPerThread = 2;

bool IsOfTokens(const Problem& problem) { return problem.input.plane() == 1 && problem.window().IsPointwise(); }

Band BandOf(const Problem& problem, int64_t first_row, int64_t rows) {
  const Window& window = problem.window();
  const int64_t reach = int64_t{window.kernel_h - 1} * window.dilation_h + 1;
  const int64_t begin = first_row * window.stride_h - window.pad_top;
  const int64_t end = (first_row + rows - 1) * window.stride_h - window.pad_top + reach;
  Band band{.first_input_row = std::max<int64_t>(begin, 0), .first_output_row = first_row};
  band.shape = {.input_rows = std::min(end, problem.input.height) - band.first_input_row,
                .output_rows = rows,
                .pad_top = band.first_input_row - begin,
                .pad_bottom = std::max<int64_t>(end - problem.input.height, 0)};
  return band;
}

std::vector<Band> BandsOf(const Problem& problem, int64_t count) {
  const int64_t rows = problem.output.height;
  std::vector<Band> bands;
  for (int64_t i = 0; i < count; ++i) {
    bands.push_back(BandOf(problem, rows * i / count, rows * (i + 1) / count - rows * i / count));
  }
  return bands;
}

}  // namespace

int64_t ConvPieces::Count(int64_t batch) const {
  return bands.empty() ? CeilDiv(batch, kTokens) : batch * static_cast<int64_t>(bands.size());
}

bool CanCutIntoPieces(const Problem& problem) {
  for (const Band& band : BandsOf(problem, problem.output.height)) {
    if (band.shape.input_rows <= 0) return false;
  }
  return true;
}

ConvPieces CutIntoPieces(const Problem& problem, const CacheSizes& caches) {
  const int64_t channels = problem.output.channels, blocks = CeilDiv(channels, kChannelBlock);
  const int64_t weight_bytes = channels * problem.input.channels * problem.window().taps();
  const int64_t wanted = problem.threads == 1 ? 1 : kPiecesPerThread * problem.threads;
  const auto bands_of = [&](int64_t part_channels) {
    const int64_t row_bytes = problem.output.width * part_channels * static_cast<int64_t>(sizeof(int32_t));
    return CeilDiv(problem.output.height, std::max<int64_t>(1, caches.second / 4 / row_bytes));
  };
  const int64_t most_bands = bands_of(channels);
  const int64_t parts = std::max(CeilDiv(weight_bytes, caches.second / 4), CeilDiv(wanted, most_bands));
  ConvPieces pieces;
  pieces.part_channels = std::min(channels, std::max<int64_t>(1, blocks / parts) * kChannelBlock);
  pieces.parts = CeilDiv(channels, pieces.part_channels);
  if (IsOfTokens(problem)) {
    for (const int64_t count : ConvPieces::kTokenCounts) {
      pieces.shapes.push_back({.input_rows = count, .output_rows = count, .tokens = count});
    }
    return pieces;
  }
  const int64_t bands = std::max(bands_of(pieces.part_channels), CeilDiv(wanted, pieces.parts));
  pieces.bands = BandsOf(problem, std::min(problem.output.height, bands));
  for (const Band& band : pieces.bands) {
    if (std::ranges::find(pieces.shapes, band.shape) == pieces.shapes.end()) pieces.shapes.push_back(band.shape);
  }
  return pieces;
}

}  // namespace swizzle::cpu
