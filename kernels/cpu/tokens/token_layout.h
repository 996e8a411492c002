// Where the tokens of a matrix [tokens, channels] lie, in kNchw (rows) and in kPanels.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_TOKEN_LAYOUT_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_TOKEN_LAYOUT_H_

#include <cstdint>

#include "kernels/base/layout.h"

namespace swizzle::cpu {

// Some neighbouring tokens: channel c of the i-th at offset + c * channel_stride + i * token_stride, all in floats. One
// of the strides is 1.
struct TokenRun {
  int64_t offset;
  int64_t channel_stride;
  int64_t token_stride;
  int64_t tokens;  // how far the pattern reaches, never beyond the matrix
};

// A matrix of tokens in one of the two layouts. Value type.
class TokenMatrix {
 public:
  // REQUIRES: layout is kNchw or kPanels.
  TokenMatrix(int64_t tokens, int64_t channels, Layout layout)
      : grid_(tokens), tokens_(tokens), channels_(channels), panels_(layout == Layout::kPanels) {}

  // The run that starts at `token`.
  TokenRun RunAt(int64_t token) const {
    if (!panels_) return {token * channels_, 1, channels_, tokens_ - token};
    const int64_t panel = grid_.PanelOf(token);
    const int64_t begin = grid_.Begin(panel), width = grid_.Width(panel);
    const int64_t end = begin + width < tokens_ ? begin + width : tokens_;
    return {begin * channels_ + token - begin, width, 1, end - token};
  }

 private:
  PanelGrid grid_;
  int64_t tokens_;
  int64_t channels_;
  bool panels_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_TOKEN_LAYOUT_H_
