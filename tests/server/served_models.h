// A real server on free ports with identity models, and a client of it.
#ifndef SWIZZLE_TESTS_SERVER_SERVED_MODELS_H_
#define SWIZZLE_TESTS_SERVER_SERVED_MODELS_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "proto/grpc_service.grpc.pb.h"
#include "proto/health.grpc.pb.h"
#include "server/server.h"
#include "tests/server/repository_directory.h"

namespace swizzle {

// Spins until `condition` holds; a test whose condition never comes true runs into CTest's time limit.
template <typename Condition>
void Await(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

// A request with `rows` rows of the input X, FP32 [4], raw.
inline inference::ModelInferRequest InferRequest(const std::string& model, int64_t rows = 1) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  auto& input = *request.add_inputs();
  input.set_name("X");
  input.set_datatype("FP32");
  input.add_shape(rows);
  input.add_shape(4);
  std::string bytes;
  for (int64_t i = 0; i < rows * 16; ++i) bytes.push_back(static_cast<char>(i));
  request.add_raw_input_contents(std::move(bytes));
  return request;
}

// One ModelInfer call that runs beside the test.
class InferCallInFlight {
 public:
  InferCallInFlight(inference::GRPCInferenceService::Stub& stub, inference::ModelInferRequest request)
      : request_(std::move(request)) {
    stub.async()->ModelInfer(&context_, &request_, &response_,
                             [this](grpc::Status status) { done_.set_value(std::move(status)); });
  }
  ~InferCallInFlight() {
    if (status_.valid()) status_.wait();
  }

  void Cancel() { context_.TryCancel(); }
  // Waits for the end. Call it once.
  grpc::Status Finish() { return status_.get(); }
  const inference::ModelInferResponse& response() const { return response_; }

 private:
  grpc::ClientContext context_;
  const inference::ModelInferRequest request_;
  inference::ModelInferResponse response_;
  std::promise<grpc::Status> done_;
  std::future<grpc::Status> status_ = done_.get_future();
};

class ServedModels : public ::testing::Test {
 protected:
  // Serves what `directory_` holds by now.
  void Serve(ServerOptions options = {}) {
    options.model_repositories = {directory_.path()};
    options.grpc_address = "127.0.0.1:0";
    options.metrics_address = "127.0.0.1:0";
    options.device = "cpu";
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = NewChannel();
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
    health_ = grpc::health::v1::Health::NewStub(channel_);
    if (server_->control_port() != 0) {
      control_ = inference::GRPCInferenceService::NewStub(
          grpc::CreateChannel(Concat("127.0.0.1:", server_->control_port()), grpc::InsecureChannelCredentials()));
    }
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(Concat("127.0.0.1:", server_->grpc_port()), grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  // Calls a unary method of the service, e.g. Call(&Stub::ServerLive, request, response).
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (inference::GRPCInferenceService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                                  Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    return ((*stub_).*method)(&context, request, &response);
  }
  // The same at the address for operators, where there is one.
  template <typename Request, typename Response>
  grpc::Status Order(grpc::Status (inference::GRPCInferenceService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                                   Response*),
                     const Request& request, Response& response) {
    grpc::ClientContext context;
    return ((control_ == nullptr ? *stub_ : *control_).*method)(&context, request, &response);
  }

  grpc::Status Infer(const inference::ModelInferRequest& request, inference::ModelInferResponse& response) {
    return Call(&inference::GRPCInferenceService::Stub::ModelInfer, request, response);
  }
  grpc::Status Infer(const inference::ModelInferRequest& request) {
    inference::ModelInferResponse response;
    return Infer(request, response);
  }

  bool ServerReady() {
    inference::ServerReadyResponse response;
    const auto status =
        Call(&inference::GRPCInferenceService::Stub::ServerReady, inference::ServerReadyRequest(), response);
    return status.ok() && response.ready();
  }

  // UNKNOWN where the check fails.
  grpc::health::v1::HealthCheckResponse::ServingStatus Health(const std::string& service) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    const grpc::Status status = health_->Check(&context, request, &response);
    return status.ok() ? response.status() : grpc::health::v1::HealthCheckResponse::UNKNOWN;
  }

  Batcher& BatcherOf(const std::string& model) { return *(*server_->repository().Find(model, ""))->batcher; }

  RepositoryDirectory directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_, control_;  // control_: null without --control-address
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_SERVED_MODELS_H_
