#include "client/cli/waiting_line.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/cli/clock.h"
#include "client/cli/report.h"

namespace swizzle::client {
namespace {
constexpr std::chrono::milliseconds kRedraw{200};
}  // namespace

WaitingLine::WaitingLine(Terminal& terminal, std::string what) : terminal_(terminal), what_(std::move(what)) {
  if (terminal_.show_progress) thread_ = std::thread([this] { Draw(); });
}

WaitingLine::~WaitingLine() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    ended_.notify_all();
  }
  if (!thread_.joinable()) return;
  thread_.join();
  ClearProgressLine(terminal_);
}

void WaitingLine::Draw() {
  const Stopwatch stopwatch;
  std::unique_lock lock(mutex_);
  do {
    terminal_.err << "\r\033[K  " << what_ << absl::StrFormat(", %.0f s", absl::ToDoubleSeconds(stopwatch.elapsed()))
                  << std::flush;
  } while (!ended_.wait_for(lock, kRedraw, [this] { return over_; }));
}

}  // namespace swizzle::client
