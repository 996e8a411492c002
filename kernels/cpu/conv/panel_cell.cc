#include "kernels/cpu/conv/panel_cell.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cache_sizes.h"

namespace swizzle::cpu {
namespace {

// Of the second cache, what the panels of the input may take that are to be kept there.
int64_t CacheForInput() { return HostCacheSizes().second / 8 * 3; }

bool OperandsExceedCache(const Problem& problem) {
  const size_t bytes = StorageBytes(problem.input, problem.from) + StorageBytes(problem.output, problem.to);
  return static_cast<int64_t>(bytes) > HostCacheSizes().second * problem.threads;
}

// Rows [begin, end) of a panel that begins with `position`.
std::span<const std::byte> PanelRows(const void* data, DType dtype, int64_t channels, int64_t position, int64_t width,
                                     int64_t begin, int64_t end) {
  const auto element = static_cast<int64_t>(ElementBytes(dtype));
  return {static_cast<const std::byte*>(data) + (position * channels + begin * width) * element,
          static_cast<size_t>((end - begin) * width * element)};
}

}  // namespace

int ThreadsPerPanel(const Problem& problem) {
  constexpr int64_t kCellsPerThread = 4;
  const int64_t panels = std::max<int64_t>(1, PanelGrid(problem.output.plane()).count());
  return static_cast<int>(std::clamp<int64_t>(kCellsPerThread * problem.threads / panels, 1, problem.threads));
}

int64_t WeightSlices(int64_t weight_bytes, int threads_per_panel, const CacheSizes& caches) {
  const int64_t slice_bytes = caches.second / 4 * threads_per_panel;
  return std::max<int64_t>(1, CeilDiv(weight_bytes, slice_bytes)) * threads_per_panel;
}

PanelConv::PanelConv(const KernelArgs& args, int64_t block_rows, const float* bias, int64_t slices)
    : args_(args),
      rounds_(IsBfloat16(args.problem->to)),
      slot_bytes_(WorkspaceBytes(*args.problem, block_rows) / args.problem->threads),
      bias_(bias),
      slices_(slices),
      grid_(args.problem->output.positions()),
      exceeds_cache_(OperandsExceedCache(*args.problem)),
      panel_exceeds_cache_(static_cast<int64_t>(InputRows(0, 0, args.problem->input.channels).size()) >
                           CacheForInput()) {
  if (!PanelColumns::IsDirect(*args.problem)) return;
  const int64_t panel_bytes = args.problem->input.channels * kMaxPanelWidth * static_cast<int64_t>(sizeof(float));
  panels_per_group_ = std::clamp<int64_t>(CacheForInput() / panel_bytes, 1, grid_.count());
  // Where weights are small, each thread reads all of them and keeps to panels of its own, the same ones in every
  // layer: what it reads is then not in another's cache.
  if (static_cast<int64_t>(args.weight->bytes()) > HostCacheSizes().second / 2) return;
  panels_per_group_ = std::min(panels_per_group_, std::max<int64_t>(1, grid_.count() / args.problem->threads));
}

int64_t PanelConv::Grain() const {
  if (PanelColumns::IsDirect(*args_.problem)) return 1;
  const int64_t threads = args_.problem->threads;
  if (grid_.count() >= 2 * threads) return slices_;
  return CeilDiv(grid_.count() * slices_, threads);
}

PanelPart PanelConv::PartAt(int64_t begin, int64_t end) const {
  const int64_t first_panel = begin / (panels_per_group_ * slices_) * panels_per_group_;
  const int64_t panels = std::min(panels_per_group_, grid_.count() - first_panel);
  const int64_t cell = begin - first_panel * slices_;  // of the group: slice by slice, in each panel by panel
  const int64_t slice = cell / panels;
  const int64_t last_slice = panels > 1 ? slice + 1 : std::min(slices_, slice + end - begin);
  return {first_panel + cell % panels, slice, last_slice};
}

PanelCell PanelConv::Cell(int64_t panel, float* sums) const {
  const int64_t offset = grid_.Begin(panel) * args_.problem->output.channels;
  PanelCell cell = {.columns = nullptr,
                    .sums = sums,
                    .residual = nullptr,
                    .rounded_output = nullptr,
                    .rounded_residual = nullptr,
                    .bias = bias_,
                    .width = grid_.Width(panel),
                    .epilogue = args_.problem->epilogue,
                    .first = true,
                    .last = true};
  const bool residual = args_.problem->epilogue.residual;
  if (rounds_) {
    cell.rounded_output = args_.Output<Bfloat16>() + offset;
    if (residual) cell.rounded_residual = args_.Residual<Bfloat16>() + offset;
  } else {
    cell.sums = args_.Output<float>() + offset;
    if (residual) cell.residual = args_.Residual<float>() + offset;
  }
  return cell;
}

std::span<const std::byte> PanelConv::OutputRows(int64_t panel, int64_t begin, int64_t end) const {
  return PanelRows(args_.output.data, args_.output.dtype, args_.problem->output.channels, grid_.Begin(panel),
                   grid_.Width(panel), begin, end);
}

std::span<const std::byte> PanelConv::InputRows(int64_t panel, int64_t begin, int64_t end) const {
  if (!PanelColumns::AreInputRows(*args_.problem)) return {};
  return PanelRows(args_.inputs[0].data, args_.inputs[0].dtype, args_.problem->input.channels, grid_.Begin(panel),
                   grid_.Width(panel), begin, end);
}

}  // namespace swizzle::cpu
