// What differs between the versions of gRPC and protobuf that this builds with, and nothing that does not: those of
// Debian 12 and 13 (1.51 and 3.21) and those of 2026 (1.83 and 36). Other files know no versions. Functions and
// classes, thread-safe but for SetGrpcLog.
#ifndef SWIZZLE_SERVER_LIBRARIES_VERSIONS_H_
#define SWIZZLE_SERVER_LIBRARIES_VERSIONS_H_

#include <dlfcn.h>
#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/version_info.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

// Whether gRPC is of this minor version or a newer one.
#define SWIZZLE_GRPC_SINCE(minor) (GRPC_CPP_VERSION_MAJOR > 1 || GRPC_CPP_VERSION_MINOR >= (minor))

#if SWIZZLE_GRPC_SINCE(66)
#include "absl/log/globals.h"
#include "absl/log/initialize.h"
#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#endif

namespace swizzle {

// Credentials of a server that gRPC's core made; owns them.
#if SWIZZLE_GRPC_SINCE(54)
class CoreServerCredentials : public grpc::ServerCredentials {
 protected:
  explicit CoreServerCredentials(grpc_server_credentials* core) : ServerCredentials(core) {}
};
#else
class CoreServerCredentials : public grpc::ServerCredentials {
 public:
  ~CoreServerCredentials() override { grpc_server_credentials_release(core_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 protected:
  explicit CoreServerCredentials(grpc_server_credentials* core) : core_(core) {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), core_);
  }

  grpc_server_credentials* const core_;
};
#endif

// Hears what gRPC would write on standard error: whether it is an error, and the text.
using GrpcLog = void (*)(bool is_error, std::string_view text);

// From now on; once gRPC is in use only from the thread that set it before.
#if SWIZZLE_GRPC_SINCE(66)
inline void SetGrpcLog(GrpcLog log) {
  // It is Abseil's log by then, which also has what protobuf says.
  struct Sink final : absl::LogSink {
    explicit Sink(GrpcLog to) : log(to) {}
    void Send(const absl::LogEntry& entry) override {
      log(entry.log_severity() >= absl::LogSeverity::kError, entry.text_message());
    }
    const GrpcLog log;
  };
  static Sink* sink = nullptr;  // never freed: other threads log until the process ends
  if (sink == nullptr) {
    absl::SetStderrThreshold(absl::LogSeverityAtLeast::kInfinity);
    absl::InitializeLog();
  } else {
    absl::RemoveLogSink(sink);
  }
  absl::AddLogSink(sink = new Sink(log));
}
#else
inline void SetGrpcLog(GrpcLog log) {
  static GrpcLog set = nullptr;
  set = log;
  gpr_set_log_function([](gpr_log_func_args* args) { set(args->severity == GPR_LOG_SEVERITY_ERROR, args->message); });
}
#endif

// A function that gRPC has and shows in no header, by the linker's name for it, in the versions ("1.51.") that the
// caller was tried with; null in others.
inline void* UnshownGrpcFunction(std::initializer_list<std::string_view> versions, const char* symbol) {
  const std::string runs = grpc::Version();
  const bool tried =
      std::ranges::any_of(versions, [&runs](std::string_view version) { return runs.starts_with(version); });
  return tried ? dlsym(RTLD_DEFAULT, symbol) : nullptr;
}

// A message in an arena. Before version 26, what is called Create now left a message's parts outside.
template <typename Message, typename Arena>
Message* NewMessage(Arena& arena) {
  if constexpr (requires { Arena::template CreateMessage<Message>(&arena); }) {
    return Arena::template CreateMessage<Message>(&arena);
  } else {
    return Arena::template Create<Message>(&arena);
  }
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_LIBRARIES_VERSIONS_H_
