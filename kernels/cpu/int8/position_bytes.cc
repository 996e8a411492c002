#include "kernels/cpu/int8/position_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/panel_cell.h"
#include "kernels/cpu/int8/finished_rows.h"
#include "kernels/cpu/int8/lane_weight.h"
#include "kernels/cpu/int8/position_lanes.h"
#include "kernels/cpu/int8/quad_costs.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kQuad = 4;

// Products in steps of their position; what the rest of a row is made of beside.
template <typename Products>
class PackedPositions final : public PackedWeight {
 public:
  template <typename... Args>
  explicit PackedPositions(PositionWeight weight, const Args&... args)
      : products_(weight.bytes, args...), bias_(std::move(weight.bias)), sums_(std::move(weight.sums)) {}

  size_t bytes() const override { return products_.bytes() + (bias_.size() + sums_.size()) * sizeof(float); }
  const Products& products() const { return products_; }
  const float* bias() const { return bias_.data(); }
  const float* sums() const { return sums_.data(); }

 private:
  Products products_;
  std::vector<float> bias_;
  std::vector<float> sums_;
};

// What is kept of a panel.
struct QuantisedPanel {
  uint8_t* bytes;
  PositionSteps* steps;
};

size_t ColumnBytes(const Problem& problem) {
  return static_cast<size_t>(RoundUp(problem.input.channels, kQuad) * kMaxPanelWidth);
}
size_t SlotBytes(size_t column_bytes) { return sizeof(PositionSteps) + column_bytes; }

// Threads meet in panels where there are few: all panels are quantised first then, by all threads.
bool SharesPanels(const Problem& problem) {
  return problem.threads > 1 && FullPanels(problem.output.positions()) < int64_t{2} * problem.threads;
}
int64_t Slots(const Problem& problem) {
  return SharesPanels(problem) ? FullPanels(problem.output.positions()) : problem.threads;
}

// The rows of a panel's bytes, in place, four beside each other, filled up with zeros.
void Interleave(const ByteCells& cells, int64_t channels, uint8_t* bytes) {
  const int64_t quads = CeilDiv(channels, kQuad);
  std::memset(bytes + channels * kMaxPanelWidth, 0, static_cast<size_t>((quads * kQuad - channels) * kMaxPanelWidth));
  cells.interleave(quads, bytes, bytes);
}

// Bytes row by row. complete(bytes) follows the quantising of a panel.
template <const ByteCells& kCells, typename AfterPanel>
struct RowColumns {
  size_t Bytes(const Problem& problem) const { return ColumnBytes(problem); }
  void Quantise(const ReadUnits& from, int begin, int end, int64_t channels, const QuantisedPanel& to) const {
    PositionCellsOf<kCells>().quantise(from, begin, end, channels, to.bytes, *to.steps);
  }
  void Complete(uint8_t* bytes) const { complete(bytes); }

  AfterPanel complete;
};

// Windows that lanes read, those of a unit after those of another.
struct LaneColumns {
  static size_t UnitBytes(int64_t channels) {
    const int64_t windows = LaneWeight::WindowsOf(LaneWeight::UnitsOf(channels, 1));
    return static_cast<size_t>(windows * kPositionUnit * kMaxPanelWidth);
  }
  size_t Bytes(const Problem& problem) const { return RealUnits::kUnits * UnitBytes(problem.input.channels); }
  void Quantise(const ReadUnits& from, int begin, int end, int64_t channels, const QuantisedPanel& to) const {
    for (int unit = begin; unit < end && from.first[unit] != nullptr; ++unit) {
      const int64_t at = unit * kPositionUnit;
      QuantiseWindows(from.first[unit], from.stride[unit], channels, to.bytes + unit * UnitBytes(channels),
                      to.steps->scale + at, to.steps->offset + at);
    }
  }
  void Complete(uint8_t*) const {}
};

// One layer's run. Columns: how a panel becomes bytes, some units at a time.
template <typename Columns>
class PositionRun {
 public:
  PositionRun(const KernelArgs& args, const float* bias, const float* sums, const Columns& columns)
      : args_(args),
        problem_(*args.problem),
        columns_(columns),
        slot_bytes_(SlotBytes(columns.Bytes(problem_))),
        bias_(bias),
        sums_(sums) {}

  // Calls run(slice, panel, ends) for each slice of each panel once.
  template <typename Run>
  void ForEachCell(Stream& stream, int64_t slices, const Run& run) const {
    const int64_t panels = FullPanels(problem_.output.positions());
    const bool shared = SharesPanels(problem_);
    if (shared) QuantiseAll(stream, panels);
    const auto run_range = [&](int64_t thread, int64_t begin, int64_t end) {
      for (int64_t cell = begin; cell < end; ++cell) {
        const int64_t panel = cell / slices;
        const QuantisedPanel slot = Slot(shared ? panel : thread);
        if (!shared && (cell == begin || cell % slices == 0)) {
          Quantise(panel, 0, RealUnits::kUnits, slot);
          columns_.Complete(slot.bytes);
        }
        RowEnds ends{.epilogue = &problem_.epilogue, .steps = slot.steps, .bias = bias_, .sums = sums_};
        if (problem_.epilogue.residual) ends.residual = args_.template Residual<float>() - args_.Output<float>();
        const Extent& output = problem_.output;
        const auto reals = PanelUnits<RealUnits>(args_.Output<float>(), output.positions(), output.channels, panel);
        PanelBytes of{.columns = slot.bytes, .reals = &reals};
        of.positions = std::min(of.positions, output.positions() - panel * kMaxPanelWidth);
        run(cell % slices, of, ends);
      }
    };
    CpuStream::From(stream).ParallelRanges(panels * slices, run_range, shared ? 1 : slices);
  }

 private:
  QuantisedPanel Slot(int64_t slot) const {
    std::byte* const at = args_.workspace.data() + slot * slot_bytes_;
    return {reinterpret_cast<uint8_t*>(at + sizeof(PositionSteps)), reinterpret_cast<PositionSteps*>(at)};
  }

  void Quantise(int64_t panel, int begin, int end, const QuantisedPanel& to) const {
    const Extent& input = problem_.input;
    const auto from = PanelUnits<ReadUnits>(args_.Input<float>(0), input.positions(), input.channels, panel);
    columns_.Quantise(from, begin, end, input.channels, to);
  }

  void QuantiseAll(Stream& stream, int64_t panels) const {
    const auto quantise = [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int unit = static_cast<int>(i % RealUnits::kUnits);
        Quantise(i / RealUnits::kUnits, unit, unit + 1, Slot(i / RealUnits::kUnits));
      }
    };
    CpuStream::From(stream).ParallelRanges(panels * RealUnits::kUnits, quantise);
    for (int64_t panel = 0; panel < panels; ++panel) columns_.Complete(Slot(panel).bytes);
  }

  const KernelArgs& args_;
  const Problem& problem_;
  const Columns& columns_;
  const size_t slot_bytes_;
  const float* const bias_;
  const float* const sums_;
};

// Finer than threads, so that one that is ahead can help.
int64_t Slices(const Problem& problem) {
  const int64_t threads = ThreadsPerPanel(problem);
  return threads == 1 ? 1 : 2 * threads;
}

}  // namespace

bool AcceptsPositionBytes(const Problem& problem) { return problem.window().IsPointwise(); }

size_t PositionBytesWorkspace(const Problem& problem) { return Slots(problem) * SlotBytes(ColumnBytes(problem)); }

size_t PositionLanesWorkspace(const Problem& problem) {
  return Slots(problem) * SlotBytes(LaneColumns().Bytes(problem));
}

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionQuads(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(PositionWeight made, MakeWidePositionWeight(weight));
  return std::make_unique<PackedPositions<QuadWeight>>(std::move(made), QuadShape(), Slices(problem));
}

bool HoldsPositionVectors(const Weight& weight, const Problem& problem) {
  if (!HoldsWidePositionBytes(weight, problem)) return false;
  const StatusOr<PositionWeight> made = MakeWidePositionWeight(weight);
  return made.ok() && AreFasterThanRows(made->bytes, QuadKind::kVectors);
}

bool HoldsPositionBlockQuads(const Weight& weight, const Problem& problem) {
  if (!HoldsPositionBytes(weight, problem)) return false;
  const StatusOr<PositionWeight> made = MakePositionWeight(weight);
  return made.ok() && AreFasterThanRows(made->bytes, QuadKind::kBlocks);
}

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionVectors(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(PositionWeight made, MakeWidePositionWeight(weight));
  const QuadShape shape = FastestShape(made.bytes, QuadKind::kVectors);
  return std::make_unique<PackedPositions<QuadWeight>>(std::move(made), shape, Slices(problem));
}

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionBlockQuads(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(PositionWeight made, MakePositionWeight(weight));
  const QuadShape shape = FastestShape(made.bytes, QuadKind::kBlocks);
  return std::make_unique<PackedPositions<QuadWeight>>(std::move(made), shape, Slices(problem));
}

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionLanes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(PositionWeight made, MakePositionWeight(weight));
  const int64_t channels = problem.input.channels, all_units = std::max<int64_t>(LaneWeight::UnitsOf(channels, 1), 2);
  return std::make_unique<PackedPositions<LaneWeight>>(std::move(made), channels, all_units);
}

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionBlocks(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(PositionWeight made, MakePositionWeight(weight));
  return std::make_unique<PackedPositions<ByteBlocks>>(std::move(made));
}

template <const ByteCells& kCells>
void PositionQuads(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const PackedPositions<QuadWeight>&>(*args.weight);
  const int64_t channels = args.problem->input.channels;
  const bool blocks = weight.products().shape().blocks;
  const auto complete = [=](uint8_t* bytes) {
    if (blocks) Interleave(kCells, channels, bytes);
  };
  const RowColumns<kCells, decltype(complete)> as_rows{complete};
  const PositionRun run(args, weight.bias(), weight.sums(), as_rows);
  run.ForEachCell(stream, weight.products().slices(), [&](int64_t slice, const PanelBytes& panel, const RowEnds& ends) {
    FinishedQuads<kCells>(weight.products().Slice(slice), panel, ends);
  });
}

template <const ByteCells& kCells>
void PositionBlocks(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const PackedPositions<ByteBlocks>&>(*args.weight);
  const int64_t groups = weight.products().groups(), slices = std::min(Slices(*args.problem), groups);
  const auto complete = [channels = args.problem->input.channels](uint8_t* bytes) {
    Interleave(kCells, channels, bytes);
  };
  const RowColumns<kCells, decltype(complete)> as_rows{complete};
  const PositionRun run(args, weight.bias(), weight.sums(), as_rows);
  run.ForEachCell(stream, slices, [&](int64_t slice, const PanelBytes& panel, const RowEnds& ends) {
    const int64_t begin = groups * slice / slices, end = groups * (slice + 1) / slices;
    FinishedBlocks<kCells>(weight.products().Groups(begin, end), panel, ends);
  });
}

void PositionLanes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const PackedPositions<LaneWeight>&>(*args.weight);
  const int64_t channels = args.problem->input.channels;
  const LaneColumns columns;
  const PositionRun run(args, weight.bias(), weight.sums(), columns);
  run.ForEachCell(stream, weight.products().chunks(), [&](int64_t slice, const PanelBytes& panel, const RowEnds& ends) {
    const LaneChunk chunk = weight.products().Chunk(0, slice);
    alignas(kBufferAlignment) float products[LaneChunk::kRows * kMaxPanelWidth] = {};
    for (int unit = 0; unit < RealUnits::kUnits && panel.reals->first[unit] != nullptr; ++unit) {
      MultiplyLanes(chunk, panel.columns + unit * LaneColumns::UnitBytes(channels), products + unit * kPositionUnit);
    }
    std::array<uint32_t, LaneChunk::kRows> rows;
    for (int64_t lane = 0; lane < chunk.rows; ++lane) {
      rows[lane] = static_cast<uint32_t>(chunk.first_row + chunk.row_of_lane[lane]);
    }
    N_AVX3::kPositionCells.finish(products, std::span(rows).first(chunk.rows), panel, ends);
  });
}

#define SWIZZLE_INSTANTIATE(cells)                                            \
  template void PositionQuads<cells::kByteCells>(const KernelArgs&, Stream&); \
  template void PositionBlocks<cells::kByteCells>(const KernelArgs&, Stream&);
SWIZZLE_INSTANTIATE(vnni)
SWIZZLE_INSTANTIATE(N_AVX3)
SWIZZLE_INSTANTIATE(N_AVX2)
SWIZZLE_INSTANTIATE(N_EMU128)
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cpu
