#include "server/rpc/unary_infer.h"

#include <atomic>
#include <memory>

#include "server/rpc/grpc_infer_call.h"
#include "server/rpc/wire_response.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// gRPC holds it until OnDone, which comes only after Start has returned.
class UnaryInfer final : public grpc::ServerUnaryReactor, public GrpcInferCall {
 public:
  UnaryInfer(InferCalls& calls, grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
             grpc::ByteBuffer& response)
      : GrpcInferCall(calls, context, request, {}),
        under_way_(calls, [&context] { return context.peer(); }),
        response_(response) {}

  void OnCancel() override {
    Cancel();
    Contain("count the call", [this] {
      calls_.cancelled.Add(context_.peer());
      return absl::OkStatus();
    }).IgnoreError();
  }
  void OnDone() override {
    calls_.responses.Stop(sending_);
    Release();
  }
  // Whether gRPC may call OnDone on the thread that it is on, which it keeps for its own reactors: no API, but public.
  // It wakes a thread otherwise, whose share of the server's processor time was a tenth in echo_overhead_bench. After
  // an answer OnDone waits for nothing, unless the watch, whose lock Stop takes, is about to cancel the call. It may
  // run on an executor of the model, and let go of that last (repository/retirement.h).
  bool InternalInlineable() override { return answered_.load(std::memory_order_relaxed) && !sending_.ending(); }

 private:
  void Answer(inference::ModelInferResponse& message, std::unique_ptr<HeldOfAll>) override {
    SerializeInfer(message, response_);
    answer_written_ = true;
  }

  void End(const Status& status) override {
    if (answer_written_) {
      calls_.responses.Start(sending_, [this] { context_.TryCancel(); });
      answered_.store(true, std::memory_order_relaxed);
    }
    Finish(ToGrpc(status));
  }

  const CallUnderWay under_way_;
  grpc::ByteBuffer& response_;
  bool answer_written_ = false;
  ResponseWatch::Response sending_;
  std::atomic<bool> answered_ = false;
};

}  // namespace

grpc::ServerUnaryReactor* StartInfer(InferCalls& calls, grpc::CallbackServerContext& context,
                                     const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
  const auto call = Contain(
      "take the request", [&]() -> StatusOr<UnaryInfer*> { return new UnaryInfer(calls, context, request, response); });
  if (call.ok()) {
    (*call)->Start();
    return *call;
  }
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  reactor->Finish(ToGrpc(call.status()));
  return reactor;
}

}  // namespace swizzle
