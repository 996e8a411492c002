// A line that stands on the terminal as long as this does, where a person is watching. Who hears of progress instead is
// told each line.
#ifndef SWIZZLE_MODEL_LOADER_PACK_PROGRESS_LINE_H_
#define SWIZZLE_MODEL_LOADER_PACK_PROGRESS_LINE_H_

#include <ostream>
#include <string>

#include "model_loader/pack/commands.h"

namespace swizzle::pack {

// Single-owner; `terminal` must outlive it.
class ProgressLine {
 public:
  ProgressLine(Terminal& terminal, const std::string& text) : terminal_(terminal) { status_ = Show(text); }
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // CANCELLED if the command has to end.
  Status Replace(const std::string& text) {
    Clear();
    if (status_.ok()) status_ = Show(text);
    return status_;
  }

 private:
  Status Show(const std::string& text) {
    if (terminal_.show_progress) terminal_.err << text << std::flush;
    if (!terminal_.hear || text.empty() || terminal_.hear(text)) return {};
    return MakeError(StatusCode::kCancelled, "cancelled by who was told of its progress");
  }
  void Clear() {
    if (terminal_.show_progress) terminal_.err << "\r\033[K" << std::flush;
  }

  Terminal& terminal_;
  Status status_;
};

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_PROGRESS_LINE_H_
