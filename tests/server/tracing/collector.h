// A collector of traces on a free port, which answers as a test wants it to.
#ifndef SWIZZLE_TESTS_SERVER_TRACING_COLLECTOR_H_
#define SWIZZLE_TESTS_SERVER_TRACING_COLLECTOR_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "proto/opentelemetry/trace_service.grpc.pb.h"

namespace swizzle {

// Thread-safe.
class Collector final : public opentelemetry::proto::collector::trace::v1::TraceService::Service {
 public:
  using Request = opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
  using Response = opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
  using Span = opentelemetry::proto::trace::v1::Span;
  // Answers the call of this number, from 0.
  using Answer = std::function<grpc::Status(int call, grpc::ServerContext& context, Response& response)>;

  explicit Collector(Answer answer = [](int, grpc::ServerContext&, Response&) { return grpc::Status::OK; })
      : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = Concat("127.0.0.1:", port);
  }
  ~Collector() override { server_->Shutdown(std::chrono::system_clock::now()); }

  const std::string& address() const { return address_; }

  int calls() {
    const MutexLock lock(mutex_);
    return calls_;
  }
  void AwaitCalls(int count) {
    const MutexLock lock(mutex_);
    while (calls_ < count) changed_.Wait(mutex_);
  }
  // Of calls that were answered OK.
  std::vector<Span> spans() {
    const MutexLock lock(mutex_);
    return spans_;
  }
  Request last() {
    const MutexLock lock(mutex_);
    return last_;
  }

 private:
  grpc::Status Export(grpc::ServerContext* context, const Request* request, Response* response) override {
    int call;
    {
      const MutexLock lock(mutex_);
      call = calls_++;
      last_ = *request;
      changed_.SignalAll();
    }
    const grpc::Status status = answer_(call, *context, *response);
    const MutexLock lock(mutex_);
    if (!status.ok()) return status;
    for (const auto& resource : request->resource_spans()) {
      for (const auto& scope : resource.scope_spans()) {
        spans_.insert(spans_.end(), scope.spans().begin(), scope.spans().end());
      }
    }
    return status;
  }

  const Answer answer_;
  std::string address_;
  Mutex mutex_;
  CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  Request last_ ABSL_GUARDED_BY(mutex_);
  std::vector<Span> spans_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_TRACING_COLLECTOR_H_
