// A line that stands on the terminal as long as this does, where a person is watching.
#ifndef SWIZZLE_MODEL_LOADER_PACK_PROGRESS_LINE_H_
#define SWIZZLE_MODEL_LOADER_PACK_PROGRESS_LINE_H_

#include <ostream>
#include <string>

#include "model_loader/pack/commands.h"

namespace swizzle::pack {

// Single-owner; `terminal` must outlive it.
class ProgressLine {
 public:
  ProgressLine(Terminal& terminal, const std::string& text) : terminal_(terminal) {
    if (terminal_.show_progress) terminal_.err << text << std::flush;
  }
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Replace(const std::string& text) {
    Clear();
    if (terminal_.show_progress) terminal_.err << text << std::flush;
  }

 private:
  void Clear() {
    if (terminal_.show_progress) terminal_.err << "\r\033[K" << std::flush;
  }

  Terminal& terminal_;
};

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_PROGRESS_LINE_H_
