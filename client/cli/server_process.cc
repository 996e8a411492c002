#include "client/cli/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"

namespace swizzle::client {
namespace {

constexpr int kCannotRun = 127;

// In the child, between fork and exec: calls that may be made there alone.
[[noreturn]] void RunProgram(const char* program, char* const* arguments, int output, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotRun);  // who died before that was asked for
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(program, arguments);
  _exit(kCannotRun);
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  std::error_code error;
  std::vector<std::string> folders = {std::filesystem::read_symlink("/proc/self/exe", error).parent_path()};
  const char* path = std::getenv("PATH");
  for (const auto& folder : absl::StrSplit(path == nullptr ? "" : path, ':')) folders.emplace_back(folder);
  for (const std::string& folder : folders) {
    const std::string program = absl::StrCat(folder, "/", name);
    if (!folder.empty() && access(program.c_str(), X_OK) == 0 && !std::filesystem::is_directory(program, error)) {
      return program;
    }
  }
  return UsageError(absl::StrCat("there is no ", name, " beside this program, and none on the PATH; install it"));
}

int PortOrFree(const std::string& host, int preferred) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(preferred));
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return preferred;
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return preferred;
  const int reuse = 1;  // of connections that have ended; what listens keeps its port
  setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  const bool is_free =
      bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && listen(probe, 1) == 0;
  close(probe);
  return is_free ? preferred : 0;
}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(const std::string& program,
                                                                    const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError(absl::StrCat("no pipe: ", std::strerror(errno)));
  const pid_t parent = getpid(), process = fork();
  if (process == 0) RunProgram(program.c_str(), words.data(), ends[1], parent);
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return absl::ResourceExhaustedError(absl::StrCat("cannot start ", program, ": ", std::strerror(errno)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ServerProcess>(new ServerProcess(process, ends[0]));
}

ServerProcess::~ServerProcess() {
  close(output_);
  if (process_ <= 0) return;
  Signal(SIGTERM);
  Signal(SIGTERM);  // at once
  Wait();
}

bool ServerProcess::Read(std::string& said) {
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(output_, buffer, sizeof(buffer));
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    said.append(buffer, static_cast<size_t>(count));
  }
}

void ServerProcess::Signal(int signal) {
  if (process_ > 0) kill(process_, signal);
}

int ServerProcess::Wait() {
  int status = 0;
  while (process_ > 0 && waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  return status;
}

std::string EndText(int wait_status) {
  return WIFEXITED(wait_status) ? absl::StrCat("ended with exit code ", WEXITSTATUS(wait_status))
                                : absl::StrCat("was ended by signal ", WTERMSIG(wait_status));
}

}  // namespace swizzle::client
