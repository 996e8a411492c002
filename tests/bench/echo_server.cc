#include "tests/bench/echo_server.h"

#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>

#include "kernels/base/check.h"
#include "proto/grpc_service.grpc.pb.h"

namespace swizzle {
namespace {

// Answers with as many bytes as it is told, and does nothing else unless it is told to be busy first.
class BareEcho final : public inference::GRPCInferenceService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    if (const auto busy = request->parameters().find(kBusyUs); busy != request->parameters().end()) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(busy->second.int64_param());
      while (std::chrono::steady_clock::now() < end) {
      }
    }
    response->set_model_name(request->model_name());
    response->set_model_version("1");
    (*response->mutable_parameters())["swizzle_queue_us"].set_int64_param(1);
    (*response->mutable_parameters())["swizzle_compute_us"].set_int64_param(1);
    auto& output = *response->add_outputs();
    output.set_name("Y");
    output.set_datatype(request->inputs(0).datatype());
    *output.mutable_shape() = request->inputs(0).shape();
    const auto answer = static_cast<size_t>(request->parameters().at(kAnswerBytes).int64_param());
    response->add_raw_output_contents()->assign(answer, '\1');
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

[[noreturn]] void ServeEcho(const std::function<void(int)>& tell_port) {
  BareEcho service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  SWIZZLE_CHECK(server != nullptr);
  tell_port(port);
  server->Wait();
  _exit(0);
}

ServerProcess::ServerProcess(const std::function<void(const std::function<void(int)>&)>& serve) {
  int ends[2];
  SWIZZLE_CHECK(pipe(ends) == 0);
  pid_ = fork();
  SWIZZLE_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve([&](int port) { SWIZZLE_CHECK(write(ends[1], &port, sizeof(port)) == sizeof(port)); });
  }
  close(ends[1]);
  SWIZZLE_CHECK(read(ends[0], &port_, sizeof(port_)) == sizeof(port_));
  close(ends[0]);
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace swizzle
