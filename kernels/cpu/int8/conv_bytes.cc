#include "kernels/cpu/int8/conv_bytes.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/panel_cell.h"
#include "kernels/cpu/int8/finished_rows.h"
#include "kernels/cpu/int8/quad_costs.h"
#include "kernels/cpu/int8/stem_columns.h"
#include "kernels/cpu/runtime/cache_sizes.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kQuad = 4;

// Whether the columns are the input's own rows.
bool IsDirect(const Problem& problem) {
  return problem.from.layout == Layout::kFullPanels && problem.window().IsPointwise();
}

// Of the columns of one panel, filled up to quads.
size_t ColumnBytes(const Problem& problem) {
  const int64_t rows = RoundUp(problem.input.channels * problem.window().taps(), kQuad);
  return static_cast<size_t>(rows * kMaxPanelWidth);
}

// Columns of a part: as many as leave a quarter of the first cache to weights and sums.
int64_t PartColumns() { return HostCacheSizes().first * 3 / 4 / kMaxPanelWidth; }

// Parts pay where a quad takes less than reading it from the second cache: where the first one has 48 KiB.
int64_t MostParts(int64_t columns) {
  constexpr int64_t kFewestColumns = 512;
  return PartColumns() < kFewestColumns ? 1 : CeilDiv(columns, PartColumns());
}

// Each has to have enough of a strip's quads, since its sums wait in the second cache.
int64_t PartsOf(const ByteWeight& bytes, const QuadShape& shape) {
  constexpr int64_t kFewestQuads = 8;
  return std::clamp<int64_t>(CountQuads(bytes, shape) / (kFewestQuads * bytes.rows), 1, MostParts(bytes.cols));
}

// The sums of a panel that wait between parts.
size_t SumBytes(const Problem& problem) {
  const int64_t columns = problem.input.channels * problem.window().taps();
  if (problem.to.dtype != DType::kUint8 || MostParts(columns) == 1) return 0;
  return static_cast<size_t>(problem.output.channels * kMaxPanelWidth) * sizeof(int32_t);
}

// Blocks have a place for each column once.
bool HoldsQuads(const Weight& weight, const Problem& problem, QuadKind kind) {
  const StatusOr<ByteWeight> bytes = (kind == QuadKind::kBlocks ? MakeByteWeight : MakeWideByteWeight)(weight, problem);
  return bytes.ok() && AreFasterThanRows(*bytes, kind);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareQuads(const Weight& weight, const Problem& problem, QuadKind kind) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeWideByteWeight(weight, problem));
  return std::make_unique<QuadWeight>(bytes, FastestShape(bytes, kind), ThreadsPerPanel(problem));
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareQuadsInParts(const Weight& weight, const Problem& problem,
                                                            QuadKind kind) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeWideByteWeight(weight, problem));
  const QuadShape shape = FastestShape(bytes, kind);
  const bool in_parts = problem.to.dtype == DType::kUint8 && shape.strip_rows == 1 && !problem.epilogue.function;
  return std::make_unique<QuadWeight>(bytes, shape, ThreadsPerPanel(problem), in_parts ? PartsOf(bytes, shape) : 1);
}

// What all cells of one convolution share: where a panel's columns and outputs are.
class ByteConv {
 public:
  // Of a thread's workspace; sums that wait lie behind columns.
  ByteConv(const KernelArgs& args, const ByteCells& cells, size_t column_bytes, size_t sum_bytes = 0)
      : args_(args),
        cells_(cells),
        column_bytes_(column_bytes),
        slot_bytes_(column_bytes + sum_bytes),
        panel_bytes_(args.problem->output.channels * kMaxPanelWidth),
        source_(*args.problem, args.Input<uint8_t>(0)),
        steps_(StepsOf(*args.problem)) {}

  const OutputSteps& steps() const { return steps_; }
  int64_t panels() const { return FullPanels(args_.problem->output.positions()); }
  uint8_t* Workspace(int64_t slot) const {
    return reinterpret_cast<uint8_t*>(args_.workspace.data()) + slot * slot_bytes_;
  }

  // The columns of a panel; gathered into `to` where they are no rows of the input.
  const uint8_t* Columns(int64_t panel, uint8_t* to) const {
    const Problem& problem = *args_.problem;
    if (IsDirect(problem)) return source_.data + panel * problem.input.channels * kMaxPanelWidth;
    WindowLanes lanes;
    PlanWindowLanes(problem, panel, lanes);
    const auto fill = static_cast<uint8_t>(problem.inputs_as[0].zero_point);
    cells_.gather(source_, problem.window(), lanes, {0, problem.input.channels, fill, to});
    return to;
  }

  // Those of an image, interleaved.
  const uint8_t* StemColumnsOf(int64_t panel, const StemColumns& columns, uint8_t* to) const {
    GatherStem(*args_.problem, source_, panel, columns, to);
    return to;
  }

  // The same, interleaved.
  const uint8_t* InterleavedColumns(int64_t panel, uint8_t* workspace) const {
    const uint8_t* columns = Columns(panel, workspace);
    const int64_t rows = args_.problem->input.channels * args_.problem->window().taps();
    if (columns != workspace && rows % kQuad != 0) {  // the last quad would reach beyond the input
      columns = std::copy_n(columns, rows * kMaxPanelWidth, workspace) - rows * kMaxPanelWidth;
    }
    cells_.interleave(CeilDiv(rows, kQuad), columns, workspace);
    return workspace;
  }

  // reals: kept by the caller, where the output is real.
  PanelBytes Panel(int64_t panel, const uint8_t* columns, RealUnits& reals) const {
    PanelBytes of{.columns = columns};
    of.positions = std::min(of.positions, args_.problem->output.positions() - panel * kMaxPanelWidth);
    if (args_.problem->to.dtype == DType::kUint8) {
      if (args_.problem->epilogue.residual) of.residual = args_.Residual<uint8_t>() + panel * panel_bytes_;
      of.bytes = args_.Output<uint8_t>() + panel * panel_bytes_;
    } else {
      const Extent& output = args_.problem->output;
      reals = PanelUnits<RealUnits>(args_.Output<float>(), output.positions(), output.channels, panel);
      of.reals = &reals;
    }
    return of;
  }

  // What is left to be done to rows in real numbers, where that is more than a clamp.
  std::optional<RowEnds> Ends() const {
    const Epilogue& epilogue = args_.problem->epilogue;
    const bool real = args_.problem->to.dtype == DType::kFloat32;
    if (!epilogue.function && !(real && epilogue.residual)) return std::nullopt;
    RowEnds ends{.epilogue = &epilogue};
    if (epilogue.residual) ends.residual = args_.Residual<float>() - args_.Output<float>();
    return ends;
  }

  // Calls run(slice, panel) for each slice of each panel once. prepare(panel, workspace) returns the panel's columns;
  // it is called anew for each panel that a thread is given.
  template <typename Prepare, typename Run>
  void ForEachCell(Stream& stream, int64_t slices, const Prepare& prepare, const Run& run) const {
    const int64_t threads = args_.problem->threads;
    const int64_t cells = panels() * slices;
    const bool shared = panels() < 2 * threads;  // threads meet in a panel: each prepares it as seldom as can be
    const int64_t grain = shared ? CeilDiv(cells, threads) : slices;
    const auto run_range = [&](int64_t slot, int64_t begin, int64_t end) {
      const uint8_t* columns = nullptr;
      for (int64_t cell = begin; cell < end; ++cell) {
        const int64_t panel = cell / slices;
        if (cell == begin || cell % slices == 0) columns = prepare(panel, Workspace(slot));
        RealUnits reals;
        PanelBytes of = Panel(panel, columns, reals);
        of.sums = reinterpret_cast<int32_t*>(Workspace(slot) + column_bytes_);
        run(cell % slices, of);
      }
    };
    CpuStream::From(stream).ParallelRanges(cells, run_range, grain);
  }

 private:
  const KernelArgs& args_;
  const ByteCells& cells_;
  const size_t column_bytes_, slot_bytes_;
  const int64_t panel_bytes_;
  const ByteSource source_;
  const OutputSteps steps_;
};

// Multiplies what prepare(panel, workspace) returns, interleaved, by dense rows.
template <const ByteCells& kCells, typename Prepare>
void MultiplyBlocks(const KernelArgs& args, const ByteConv& conv, const ByteBlocks& weight, const Prepare& prepare,
                    Stream& stream) {
  const std::optional<RowEnds> ends = conv.Ends();
  const int64_t groups = weight.groups(), slices = std::min<int64_t>(ThreadsPerPanel(*args.problem), groups);
  const auto run = [&](int64_t slice, const PanelBytes& panel) {
    const BlockRows rows = weight.Groups(groups * slice / slices, groups * (slice + 1) / slices);
    if (ends) return FinishedBlocks<kCells>(rows, panel, *ends);
    kCells.blocks(rows, panel, conv.steps());
  };
  conv.ForEachCell(stream, slices, prepare, run);
}

// Dense rows, with how their columns are read.
class StemWeight final : public PackedWeight {
 public:
  StemWeight(ByteWeight weight, const Problem& problem)
      : blocks_(InOrderOfImage(std::move(weight), problem.window())),
        columns_(problem.window(), problem.input.channels) {}

  size_t bytes() const override { return blocks_.bytes() + columns_.bytes(); }
  const ByteBlocks& blocks() const { return blocks_; }
  const StemColumns& columns() const { return columns_; }

 private:
  ByteBlocks blocks_;
  StemColumns columns_;
};

}  // namespace

bool AcceptsConvBytes(const Problem& problem) {
  if (!ReadsBytes(problem, Layout::kFullPanels) && !ReadsBytes(problem, Layout::kNchw)) return false;
  if (!HasWindowLanes(problem)) return false;
  if (problem.to == Storage{Layout::kPanels, DType::kFloat32}) return true;
  if (!WritesBytes(problem, Layout::kFullPanels)) return false;
  return !problem.epilogue.residual || (!problem.epilogue.function && problem.inputs_as[1].dtype == DType::kUint8);
}

bool AcceptsStemConv(const Problem& problem) {
  constexpr int64_t kMostChannels = 4;  // of eight and more BlockConv takes less time
  return problem.input.channels <= kMostChannels && ReadsBytes(problem, Layout::kNchw) && AcceptsConvBytes(problem) &&
         StemColumns::Fit(problem.window());
}

size_t QuadConvWorkspaceBytes(const Problem& problem) {
  return problem.threads * ((IsDirect(problem) ? 0 : ColumnBytes(problem)) + SumBytes(problem));
}

size_t BlockQuadConvWorkspaceBytes(const Problem& problem) {
  return problem.threads * (ColumnBytes(problem) + SumBytes(problem));
}

size_t BlockConvWorkspaceBytes(const Problem& problem) { return problem.threads * ColumnBytes(problem); }

bool HoldsVectorQuads(const Weight& weight, const Problem& problem) {
  return HoldsQuads(weight, problem, QuadKind::kVectors);
}

bool HoldsBlockQuads(const Weight& weight, const Problem& problem) {
  return HoldsQuads(weight, problem, QuadKind::kBlocks);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareQuadConv(const Weight& weight, const Problem& problem) {
  return PrepareQuads(weight, problem, QuadKind::kRows);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareQuadConvInParts(const Weight& weight, const Problem& problem) {
  return PrepareQuadsInParts(weight, problem, QuadKind::kRows);
}

StatusOr<std::unique_ptr<PackedWeight>> PreparePairedQuadConv(const Weight& weight, const Problem& problem) {
  return PrepareQuads(weight, problem, QuadKind::kPairs);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareVectorQuadConv(const Weight& weight, const Problem& problem) {
  return PrepareQuads(weight, problem, QuadKind::kVectors);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockQuadConv(const Weight& weight, const Problem& problem) {
  return PrepareQuads(weight, problem, QuadKind::kBlocks);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockQuadConvInParts(const Weight& weight, const Problem& problem) {
  return PrepareQuadsInParts(weight, problem, QuadKind::kBlocks);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockConv(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<ByteBlocks>(bytes);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareStemConv(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<StemWeight>(std::move(bytes), problem);
}

template <const ByteCells& kCells>
void QuadConv(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const QuadWeight&>(*args.weight);
  const bool blocks = weight.shape().blocks;
  const bool gathers = blocks || !IsDirect(*args.problem);
  const int64_t parts = weight.parts();
  const ByteConv conv(args, kCells, gathers ? ColumnBytes(*args.problem) : 0, parts > 1 ? SumBytes(*args.problem) : 0);
  const std::optional<RowEnds> ends = conv.Ends();
  const auto prepare = [&](int64_t panel, uint8_t* workspace) {
    return blocks ? conv.InterleavedColumns(panel, workspace) : conv.Columns(panel, workspace);
  };
  const auto run = [&](int64_t slice, const PanelBytes& panel) {
    if (ends) return FinishedQuads<kCells>(weight.Slice(slice), panel, *ends);
    for (int64_t part = 0; part < parts; ++part) kCells.quads(weight.Slice(slice, part), panel, conv.steps());
  };
  conv.ForEachCell(stream, weight.slices(), prepare, run);
}

template <const ByteCells& kCells>
void BlockConv(const KernelArgs& args, Stream& stream) {
  const ByteConv conv(args, kCells, ColumnBytes(*args.problem));
  const auto prepare = [&](int64_t panel, uint8_t* workspace) { return conv.InterleavedColumns(panel, workspace); };
  MultiplyBlocks<kCells>(args, conv, static_cast<const ByteBlocks&>(*args.weight), prepare, stream);
}

void StemConv(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const StemWeight&>(*args.weight);
  const ByteConv conv(args, vbmi::kByteCells, ColumnBytes(*args.problem));
  const auto prepare = [&](int64_t panel, uint8_t* workspace) {
    return conv.StemColumnsOf(panel, weight.columns(), workspace);
  };
  MultiplyBlocks<vbmi::kByteCells>(args, conv, weight.blocks(), prepare, stream);
}

#define SWIZZLE_INSTANTIATE(cells)                                       \
  template void QuadConv<cells::kByteCells>(const KernelArgs&, Stream&); \
  template void BlockConv<cells::kByteCells>(const KernelArgs&, Stream&);
SWIZZLE_INSTANTIATE(vbmi)
SWIZZLE_INSTANTIATE(vnni)
SWIZZLE_INSTANTIATE(N_AVX3)
SWIZZLE_INSTANTIATE(N_AVX2)
SWIZZLE_INSTANTIATE(N_EMU128)
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cpu
