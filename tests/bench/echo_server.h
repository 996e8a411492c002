// A bare gRPC service that answers ModelInfer with as many bytes as it is told, and servers in processes of their own.
//
// What it takes is what gRPC takes: echo_overhead_bench holds the server against it. ServerProcess forks, so that it
// has to be made before this process uses gRPC.
#ifndef SWIZZLE_TESTS_BENCH_ECHO_SERVER_H_
#define SWIZZLE_TESTS_BENCH_ECHO_SERVER_H_

#include <sys/types.h>

#include <functional>

namespace swizzle {

// In a request: how long the echo's answer is to be, and after how long. Other servers let parameters pass that they
// don't know.
inline constexpr char kAnswerBytes[] = "answer_bytes", kBusyUs[] = "busy_us";

// Serves for ever; tells its port once it does.
[[noreturn]] void ServeEcho(const std::function<void(int)>& tell_port);

// A process that serves on port() until the object goes.
class ServerProcess {
 public:
  // `serve` runs in the new process, and is told how to tell its port. gRPC must not have been used in this one before.
  explicit ServerProcess(const std::function<void(const std::function<void(int)>&)>& serve);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  int port() const { return port_; }

 private:
  pid_t pid_ = 0;
  int port_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_BENCH_ECHO_SERVER_H_
