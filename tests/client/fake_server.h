// A server of the protocol for tests of the client, in this process, on a free port.
#ifndef SWIZZLE_TESTS_CLIENT_FAKE_SERVER_H_
#define SWIZZLE_TESTS_CLIENT_FAKE_SERVER_H_

#include <atomic>
#include <latch>
#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "proto/grpc_service.grpc.pb.h"

namespace swizzle::client {

// Serves three models of one input "x" FP32 [-1,3]: "echo" answers its input as output "y", with queue 5 us and compute
// 7 us; "broken" answers nonsense; "slow" does not answer. Anything else is NOT_FOUND. On streams there is "thrice",
// too, which answers three times and then tells that it was all; an error there has its code where it is "told".
// Thread-safe.
class FakeServer final : public inference::GRPCInferenceService::Service {
 public:
  explicit FakeServer(bool takes_gzip = true) {
    grpc::ServerBuilder builder;
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, takes_gzip);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() override {
    release_slow_.count_down();
    server_->Shutdown();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  std::atomic<bool> ready = true;
  std::atomic<bool> lists = true;     // models: "echo", ready like the server, and "broken", which failed
  std::atomic<bool> refuses = false;  // to tell statistics
  std::atomic<int> infer_calls = 0;
  std::atomic<int> order_calls = 0;  // to load and unload
  std::latch slow_started{1};        // counted down when "slow" is called
  // So many of the next calls to infer and to load are refused so, and told to wait for `pushback` ms where it is set.
  std::atomic<int> refusals = 0;
  grpc::StatusCode refusal = grpc::StatusCode::UNAVAILABLE;
  std::string pushback;
  std::atomic<int> hanging = 0;  // so many of the next calls to infer are not answered

 private:
  static grpc::Status Known(const std::string& model) {
    if (model == "echo" || model == "broken" || model == "slow") return grpc::Status::OK;
    return {grpc::StatusCode::NOT_FOUND, "model '" + model + "' is not known"};
  }

  grpc::Status ServerLive(grpc::ServerContext*, const inference::ServerLiveRequest*,
                          inference::ServerLiveResponse* response) override {
    response->set_live(true);
    return grpc::Status::OK;
  }

  grpc::Status ServerReady(grpc::ServerContext*, const inference::ServerReadyRequest*,
                           inference::ServerReadyResponse* response) override {
    response->set_ready(ready);
    return grpc::Status::OK;
  }

  grpc::Status ModelReady(grpc::ServerContext*, const inference::ModelReadyRequest* request,
                          inference::ModelReadyResponse* response) override {
    response->set_ready(ready);
    return Known(request->name());
  }

  grpc::Status RepositoryIndex(grpc::ServerContext*, const inference::RepositoryIndexRequest*,
                               inference::RepositoryIndexResponse* response) override {
    if (!lists) return {grpc::StatusCode::UNIMPLEMENTED, "RepositoryIndex is not supported"};
    auto& echo = *response->add_models();
    echo.set_name("echo");
    echo.set_version("3");
    echo.set_state(ready ? "READY" : "LOADING");
    auto& broken = *response->add_models();
    broken.set_name("broken");
    broken.set_state("UNAVAILABLE");
    broken.set_reason("the file ends early");
    return grpc::Status::OK;
  }

  grpc::Status RepositoryModelLoad(grpc::ServerContext*, const inference::RepositoryModelLoadRequest* request,
                                   inference::RepositoryModelLoadResponse*) override {
    ++order_calls;
    if (IsNext(refusals)) return {refusal, "not now"};
    if (request->model_name() == "secret") return {grpc::StatusCode::PERMISSION_DENIED, "not here"};
    if (request->model_name() == "broken") return {grpc::StatusCode::INTERNAL, "model 'broken' failed to load"};
    return Known(request->model_name());
  }

  grpc::Status RepositoryModelUnload(grpc::ServerContext*, const inference::RepositoryModelUnloadRequest* request,
                                     inference::RepositoryModelUnloadResponse*) override {
    return Known(request->model_name());
  }

  grpc::Status ServerMetadata(grpc::ServerContext*, const inference::ServerMetadataRequest*,
                              inference::ServerMetadataResponse* response) override {
    response->set_name("fake");
    response->set_version("1.2");
    response->add_extensions("statistics");
    return grpc::Status::OK;
  }

  grpc::Status ModelMetadata(grpc::ServerContext*, const inference::ModelMetadataRequest* request,
                             inference::ModelMetadataResponse* response) override {
    response->set_name(request->name());
    response->add_versions("3");
    response->set_platform("fake_platform");
    Describe("x", *response->add_inputs());
    Describe("y", *response->add_outputs());
    (*response->mutable_properties())["sparsity"] = "0.9";
    return Known(request->name());
  }

  grpc::Status ModelStatistics(grpc::ServerContext*, const inference::ModelStatisticsRequest* request,
                               inference::ModelStatisticsResponse* response) override {
    if (refuses) return {grpc::StatusCode::UNAUTHENTICATED, "show a token"};
    if (!request->name().empty() && request->name() != "echo") return Known("");
    auto& echo = *response->add_model_stats();
    const auto calls = static_cast<uint64_t>(infer_calls);
    echo.set_name("echo");
    echo.set_version("3");
    echo.set_inference_count(2 * calls);
    echo.set_execution_count(calls);
    Count(calls, *echo.mutable_inference_stats()->mutable_success());
    Count(calls, *echo.mutable_inference_stats()->mutable_queue());
    Count(calls, *echo.mutable_inference_stats()->mutable_compute_infer());
    echo.mutable_inference_stats()->mutable_fail()->set_count(1);
    if (calls == 0) return grpc::Status::OK;
    echo.set_last_inference(1'700'000'000'000);
    auto& batch = *echo.add_batch_stats();
    batch.set_batch_size(2);
    Count(calls, *batch.mutable_compute_infer());
    auto& memory = *echo.add_memory_usage();
    memory.set_type("CPU");
    memory.set_byte_size(2'500'000);
    return grpc::Status::OK;
  }

  // Each took a millisecond.
  static void Count(uint64_t calls, inference::StatisticDuration& duration) {
    duration.set_count(calls);
    duration.set_ns(calls * 1'000'000);
  }

  grpc::Status ModelConfig(grpc::ServerContext*, const inference::ModelConfigRequest* request,
                           inference::ModelConfigResponse* response) override {
    response->mutable_config()->set_name(request->name());
    response->mutable_config()->set_max_batch_size(8);
    response->mutable_config()->add_input()->add_dims(int64_t{3});
    return Known(request->name());
  }

  static void Describe(const char* name, inference::ModelMetadataResponse::TensorMetadata& tensor) {
    tensor.set_name(name);
    tensor.set_datatype("FP32");
    tensor.add_shape(-1);
    tensor.add_shape(3);
  }

  static bool IsNext(std::atomic<int>& calls) {
    if (calls.fetch_sub(1) > 0) return true;
    ++calls;
    return false;
  }

  grpc::Status ModelInfer(grpc::ServerContext* context, const inference::ModelInferRequest* request,
                          inference::ModelInferResponse* response) override {
    ++infer_calls;
    if (IsNext(refusals)) {
      if (!pushback.empty()) context->AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
      return {refusal, "not now"};
    }
    if (request->model_name() == "slow" || IsNext(hanging)) {
      if (!slow_started.try_wait()) slow_started.count_down();
      release_slow_.wait();
      return grpc::Status::CANCELLED;
    }
    response->set_model_name(request->model_name());
    response->set_model_version("3");
    response->set_id(request->id());
    (*response->mutable_parameters())["swizzle_queue_us"].set_int64_param(5);
    (*response->mutable_parameters())["swizzle_compute_us"].set_int64_param(7);
    auto* output = response->add_outputs();
    output->set_name("y");
    output->set_datatype("FP32");
    if (request->model_name() == "echo") {
      *output->mutable_shape() = request->inputs(0).shape();
      response->add_raw_output_contents(request->raw_input_contents(0));
    }
    return Known(request->model_name());
  }

  grpc::Status ModelStreamInfer(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<inference::ModelStreamInferResponse, inference::ModelInferRequest>* stream) override {
    for (inference::ModelInferRequest request; stream->Read(&request);) {
      inference::ModelStreamInferResponse answer;
      inference::ModelInferResponse& response = *answer.mutable_infer_response();
      if (request.model_name() == "thrice") {
        request.set_model_name("echo");
        for (int i = 0; i < 3; ++i) {
          ModelInfer(context, &request, &response);
          stream->Write(answer);
          response.Clear();
        }
        response.set_id(request.id());
        (*response.mutable_parameters())["triton_final_response"].set_bool_param(true);
      } else if (request.model_name() == "end") {
        return {grpc::StatusCode::UNAVAILABLE, "open another stream"};
      } else if (const grpc::Status status = ModelInfer(context, &request, &response); !status.ok()) {
        response.Clear();
        response.set_id(request.id());
        answer.set_error_message(status.error_message());
        if (request.id() == "told") {
          (*response.mutable_parameters())["swizzle_status_code"].set_int64_param(status.error_code());
        }
      } else {
        (*response.mutable_parameters())["triton_final_response"].set_bool_param(true);
      }
      stream->Write(answer);
    }
    return grpc::Status::OK;
  }

  std::latch release_slow_{1};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace swizzle::client

#endif  // SWIZZLE_TESTS_CLIENT_FAKE_SERVER_H_
