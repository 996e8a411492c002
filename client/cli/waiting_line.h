// A line for a person who waits, redrawn in place, that says what for and how long already.
#ifndef SWIZZLE_CLIENT_CLI_WAITING_LINE_H_
#define SWIZZLE_CLIENT_CLI_WAITING_LINE_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "client/cli/command.h"

namespace swizzle::client {

// Drawn by a thread of its own while this lives; nothing is drawn unless the terminal shows progress. Until it is gone
// nobody else may write to the terminal's `err`.
class WaitingLine {
 public:
  WaitingLine(Terminal& terminal, std::string what);
  ~WaitingLine();
  WaitingLine(const WaitingLine&) = delete;

 private:
  void Draw();

  Terminal& terminal_;
  const std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_WAITING_LINE_H_
