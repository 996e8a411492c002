#include "client/cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

namespace swizzle::client {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

int event = -1;  // what the handler writes to; handlers have no argument of ours
struct sigaction before[std::size(kSignals)];

void Count(int) {
  const int error = errno;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event, &one, sizeof(one));
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction counting = {};
  counting.sa_handler = Count;
  counting.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &counting, &before[i]);
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
  close(event);
  event = -1;
}

int Interrupt::descriptor() const { return event; }

bool Interrupt::Take() {
  uint64_t count = 0;
  return read(event, &count, sizeof(count)) == sizeof(count);
}

bool Interrupt::Wait(absl::Duration most) {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(most);
  for (;;) {
    if (Take()) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd watched{event, POLLIN, 0};
    poll(&watched, 1, static_cast<int>(std::min<int64_t>(left, 3'600'000)));
  }
}

}  // namespace swizzle::client
