#include "kernels/cpu/panel_cell.h"

#include <algorithm>

#include "kernels/cpu/cache_sizes.h"

namespace swizzle::cpu {

PanelConv::PanelConv(const KernelArgs& args, Layout layout, int64_t block_rows, const float* bias, int64_t slices)
    : args_(args),
      layout_(layout),
      slot_bytes_(PanelColumns::WorkspaceBytes(*args.problem, layout, block_rows)),
      bias_(bias),
      slices_(slices),
      grid_(args.problem->output.positions()) {
  if (!PanelColumns::IsDirect(*args.problem, layout)) return;
  const int64_t panel_bytes = args.problem->input.channels * kMaxPanelWidth * static_cast<int64_t>(sizeof(float));
  // The input of a group takes three eighths of the second cache.
  panels_per_group_ = std::clamp<int64_t>(HostCacheSizes().second / 8 * 3 / panel_bytes, 1, grid_.count());
  // Where weights are small, each thread reads all of them and keeps to panels of its own, the same ones in every
  // layer: what it reads is then not in another's cache.
  if (static_cast<int64_t>(args.weight->bytes()) > HostCacheSizes().second / 2) return;
  panels_per_group_ = std::min(panels_per_group_, std::max<int64_t>(1, grid_.count() / args.problem->threads));
}

PanelPart PanelConv::PartAt(int64_t begin, int64_t end) const {
  const int64_t first_panel = begin / (panels_per_group_ * slices_) * panels_per_group_;
  const int64_t panels = std::min(panels_per_group_, grid_.count() - first_panel);
  const int64_t cell = begin - first_panel * slices_;  // of the group: slice by slice, in each panel by panel
  const int64_t slice = cell / panels;
  const int64_t last_slice = panels > 1 ? slice + 1 : std::min(slices_, slice + end - begin);
  return {first_panel + cell % panels, slice, last_slice};
}

PanelCell PanelConv::Cell(int64_t panel) const {
  const int64_t offset = grid_.Begin(panel) * args_.problem->output.channels;
  const bool residual = args_.problem->epilogue.residual;
  return {.columns = nullptr,
          .output = args_.output + offset,
          .residual = residual ? args_.inputs[1] + offset : nullptr,
          .bias = bias_,
          .width = grid_.Width(panel),
          .epilogue = args_.problem->epilogue,
          .first = true,
          .last = true};
}

std::span<const float> PanelConv::InputPanel(int64_t panel) const {
  if (!PanelColumns::IsDirect(*args_.problem, layout_)) return {};
  const int64_t channels = args_.problem->input.channels;
  return {args_.inputs[0] + grid_.Begin(panel) * channels, static_cast<size_t>(channels * grid_.Width(panel))};
}

bool PanelConv::ExceedsCache() const {
  const Problem& problem = *args_.problem;
  const int64_t floats = LayoutElements(problem.input, layout_) + LayoutElements(problem.output, Layout::kPanels);
  return floats * static_cast<int64_t>(sizeof(float)) > HostCacheSizes().second * problem.threads;
}

}  // namespace swizzle::cpu
