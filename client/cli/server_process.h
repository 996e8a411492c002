// A swizzle-server that this process starts, and that does not outlive it.
#ifndef SWIZZLE_CLIENT_CLI_SERVER_PROCESS_H_
#define SWIZZLE_CLIENT_CLI_SERVER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace swizzle::client {

// The program of that name that lies beside this one, else the first on the PATH. A usage error where there is none.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// `preferred` where nothing listens at it on the host, else 0, which takes a free one.
int PortOrFree(const std::string& host, int preferred);

// Owns the process: the destructor ends it. Not thread-safe.
class ServerProcess {
 public:
  // In a process group of its own, so that Ctrl-C reaches this process alone. Call it before there are other threads.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const std::string& program,
                                                              const std::vector<std::string>& arguments);
  ~ServerProcess();

  // Readable once it has said something, or has ended.
  int output() const { return output_; }
  // Appends what it has said since, on standard output and error. Whether it still runs, as far as that tells.
  bool Read(std::string& said);
  void Signal(int signal);
  // Waits for its end; what waitpid says of it.
  int Wait();

 private:
  ServerProcess(pid_t process, int output) : process_(process), output_(output) {}

  pid_t process_;
  const int output_;
};

// "ended with exit code 1", "was ended by signal 9".
std::string EndText(int wait_status);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_SERVER_PROCESS_H_
