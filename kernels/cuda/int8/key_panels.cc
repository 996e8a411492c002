#include <algorithm>
#include <vector>

#include "kernels/cuda/int8/attention_bytes.h"

namespace swizzle::cuda {

bool KeyPanels::AreShared(const AttentionPattern& pattern) {
  std::vector<int64_t> last_panel(pattern.tokens, -1);  // that has this key
  int64_t slots = 0;
  for (int64_t first = 0; first < pattern.tokens; first += BytePanels::kRows) {
    int64_t keys = 0;
    for (int64_t query = first; query < std::min(first + BytePanels::kRows, pattern.tokens); ++query) {
      for (const uint32_t key : pattern.Keys(query)) {
        keys += last_panel[key] != first;
        last_panel[key] = first;
      }
    }
    slots += RoundUp(keys, int64_t{BytePanels::kStep});
  }
  return slots <= MostSlots(pattern.tokens, pattern.nnz());
}

StatusOr<std::unique_ptr<KeyPanels>> KeyPanels::Make(const AttentionPattern& pattern) {
  constexpr int kRows = BytePanels::kRows, kStep = BytePanels::kStep;
  if (pattern.tokens < 1 || pattern.tokens > BytePanels::kMostColumns) {
    return InvalidArgument("a pattern of ", pattern.tokens, " tokens; 1 to ", BytePanels::kMostColumns,
                           " are possible");
  }
  std::vector<std::vector<WholeEntry>> rows(pattern.tokens);
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    for (const uint32_t key : pattern.Keys(query)) rows[query].push_back({static_cast<int32_t>(key), 1});
  }
  const PackedPanels packed = BytePanels::Pack(rows, pattern.tokens, 8);
  std::vector<uint8_t> masks(packed.columns.size());
  for (size_t i = 0; i < masks.size(); ++i) {
    const uint8_t* const weights = packed.weights.data() + i / kStep * BytePanels::StepBytes(8);
    for (int row = 0; row < kRows; ++row) {
      if (weights[BytePanels::PlaceInStep(row, static_cast<int>(i % kStep))] != 0) masks[i] |= 1 << row;
    }
  }
  auto made = std::make_unique<KeyPanels>();
  SWIZZLE_ASSIGN_OR_RETURN(made->panels_, BytePanels::Upload(packed, pattern.tokens, pattern.tokens, 8));
  SWIZZLE_ASSIGN_OR_RETURN(made->masks_, DeviceArray<uint8_t>::Upload(masks));
  return made;
}

}  // namespace swizzle::cuda
