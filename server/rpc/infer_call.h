// One request for an inference, from its bytes to its answer, whichever RPC brought it.
#ifndef SWIZZLE_SERVER_RPC_INFER_CALL_H_
#define SWIZZLE_SERVER_RPC_INFER_CALL_H_

#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "server/batching/batcher.h"
#include "server/model/inflight_bytes.h"
#include "server/model/request.h"
#include "server/repository/model_repository.h"
#include "server/rpc/connection_bytes.h"
#include "server/rpc/greedy_connections.h"
#include "server/rpc/infer_streams.h"
#include "server/rpc/received_message.h"
#include "server/rpc/requested_output.h"
#include "server/rpc/response_watch.h"
#include "server/rpc/rpc_limits.h"
#include "server/rpc/shared_memory.h"
#include "server/rpc/wire_survey.h"
#include "server/security/authorization.h"
#include "server/threading/clock.h"
#include "server/threading/task_threads.h"
#include "server/tracing/request_sampler.h"

namespace swizzle {

// Calls that ended before they reached a model.
struct RefusedCalls {
  std::atomic<int64_t> malformed = 0;       // no message of the protocol
  std::atomic<int64_t> too_large = 0;       // beyond the limits of the server or of the model
  std::atomic<int64_t> inflight_bytes = 0;  // no room for them
};

// Streams of inference, and requests that were read from them.
struct StreamedCalls {
  std::atomic<int64_t> streams = 0;   // open
  std::atomic<int64_t> requests = 0;  // not yet dropped
  std::atomic<int64_t> unread = 0;    // of these, over
};

// What all calls share. Outlives them.
struct InferCalls {
  using Repository = absl::AnyInvocable<StatusOr<const ModelRepository*>() const>;

  InferCalls(const RpcLimits& all_limits, Clock& of_server, Repository to_ask);

  // Returns what a client shows for its rights (InferCall::Shown), which is looked for only where these limit models.
  using Shown = absl::FunctionRef<std::string_view()>;
  // PERMISSION_DENIED where the client may not use the model.
  Status CheckModel(std::string_view model, Shown shown) const;
  // The latest version that serves, for that client; a model that is not served is counted so.
  StatusOr<std::shared_ptr<ServingModel>> Find(std::string_view model, Shown shown) const;

  const RpcLimits limits;
  Clock& clock;
  const Repository repository;
  const Authorization* authorization = &Authorization::Open();  // asked about each request's model
  const MessageLimits message_limits;
  std::atomic<bool> refusing = false;  // new calls, for a shutdown
  std::atomic<int64_t> under_way = 0;  // that have begun and that gRPC is not done with
  InflightBytes inflight;              // of all models
  ConnectionBytes connections;         // of those, by connection
  RefusedCalls refused;
  StreamedCalls streamed;
  ResponseWatch responses;
  CancelledCalls cancelled;
  UnfinishedCalls unfinished;  // of connections, while there are many
  InferStreams streams;
  SharedRegions shared_memory;
  RequestSampler* sampler = nullptr;  // null: no request is logged or traced
  TaskThreads decoders;               // last: they use all of the above
};

// Counts a call as under way, from its beginning until gRPC is done with it.
class CallUnderWay {
 public:
  // `peer` names the connection.
  CallUnderWay(InferCalls& calls, absl::FunctionRef<std::string()> peer);
  ~CallUnderWay();
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

 private:
  InferCalls& calls_;
  std::string unfinished_of_;  // the connection that this call counts for; empty: there are few calls
};

// Memory for a message, at first its own: most messages are small.
class MessageMemory {
 public:
  google::protobuf::Arena& arena() { return arena_; }

 private:
  alignas(8) std::array<char, 1024> first_;
  google::protobuf::Arena arena_ = google::protobuf::Arena(first_.data(), first_.size());
};

// What a request or an answer holds of all accounts of bytes in flight. The model's is given back before the model is.
struct HeldOfAll {
  HeldBytes server, model, connection;
};

// What brings requests derives from it, and hears of the answer. A message is looked at before it is parsed
// (wire_survey.h). Large and compressed ones are read on threads of their own, so that gRPC's go on with others. The
// request's message, into which the batcher's request holds views, lives until that has its result.
//
// Deletes itself once all have let go of it: who made it, and whoever decodes it. It has to be held while Start or
// Cancel runs. Thread-safe.
class InferCall : private AnswerSink, private RequestBudget {
 public:
  InferCall(const InferCall&) = delete;
  InferCall& operator=(const InferCall&) = delete;

  // On gRPC's thread. End may come before it returns.
  void Start();
  // Ends the request if it has not begun to run. Start may be under way: whichever of the two is second, sees the
  // other's mark.
  void Cancel();

  void Retain() { owners_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  // What brings the request.
  struct Carrier {
    int64_t least_bytes = 0;   // that the accounts of bytes in flight hold of it
    bool any_answers = false;  // a stream, which takes any number of answers, rather than one
  };

  // `request` outlives this.
  InferCall(InferCalls& calls, const grpc::ByteBuffer& request, Carrier carrier);
  ~InferCall() override = default;

  // Who brings it, and what came beside the message. The connection, as no other is called:
  virtual std::string Peer() const = 0;
  // The first header of that name, which is in lower case; empty where there is none. Not for two threads at once.
  virtual std::string_view Header(std::string_view name) const = 0;
  // The one header "authorization"; empty for none, or several.
  virtual std::string_view Shown() const = 0;
  virtual Instant AskedDeadline() const = 0;

  // Keeps the bytes of an answer, which it may take out of `message`, and what it holds until it is sent: null where
  // the request's own accounts have it.
  virtual void Answer(inference::ModelInferResponse& message, std::unique_ptr<HeldOfAll> held) = 0;
  // The request is over, exactly once, and counted. The last thing done with it.
  virtual void End(const Status& status) = 0;

  // What serves the request's model; null until that is found. Once it has an answer, or has ended.
  const ServingModel* serving() const { return serving_.get(); }
  // Whether what came is no message of the protocol, or beyond a limit on its size. Once it has ended.
  bool malformed() const { return malformed_; }
  bool too_large() const { return too_large_; }
  // The request's id, as far as it can be read. Until an answer is written.
  std::string Id() const;

  InferCalls& calls_;

 private:
  const ModelSpec& spec() const { return serving_->model->spec(); }

  Status Begin();
  void Take();
  Status Submit();
  Status Read();
  StatusOr<MessageLimits> LimitsFor(std::string_view model);
  StatusOr<WireSurvey> Survey();
  Status Hold(HeldOfAll& held, int64_t bytes);
  void HoldAnyway(int64_t bytes);
  Status NoRoom(const std::string& whose, const InflightBytes& account, int64_t most);
  Status CheckResponse(const Request& request);
  void OnResult(StatusOr<Result> result);
  Status Write(Result result);
  Status HoldShared();
  Status WriteShared(Result& result);
  void NameShared(inference::ModelInferResponse& message) const;
  bool Emit(std::vector<std::string> outputs, std::vector<Shape> shapes) override;
  bool begun() const override { return begun_; }
  Status Add(int64_t bytes) override;
  Status WriteOneOfMany(Result result);
  void DropRequest();
  void Conclude(const Status& status);

  ReceivedMessage received_;
  const Instant start_;
  const Carrier carrier_;
  std::shared_ptr<ServingModel> serving_;          // null until the message names one
  std::shared_ptr<ConnectionAccount> connection_;  // null: it is not counted
  HeldOfAll held_;
  MessageMemory request_memory_, response_memory_;
  inference::ModelInferRequest* request_;  // null once the answer is written
  int64_t request_bytes_ = 0;
  int64_t text_tokens_ = 0;     // Request's
  int64_t promised_bytes_ = 0;  // of the request, and of what its response will have
  Mutex added_mutex_;
  int64_t added_bytes_ ABSL_GUARDED_BY(added_mutex_) = 0;  // RequestBudget's
  uint64_t peer_ = 0;                                      // Request's connection
  Instant deadline_ = Instant::InfiniteFuture();
  std::vector<RequestedOutput> outputs_;
  std::unique_ptr<SampledRequest> sample_;   // null: it is neither logged nor traced
  std::vector<SharedBytes> shared_outputs_;  // of outputs_; empty where none is in shared memory
  bool parsed_ = false, malformed_ = false, too_large_ = false;
  bool marks_final_ = false;        // DecodedInfer's
  bool begun_ = false;              // there was an answer of many
  Status emitted_;                  // what was wrong with one of them
  std::atomic<Ticket> ticket_ = 0;  // 0 is never a ticket
  std::atomic<bool> cancelled_ = false;
  std::atomic<int> owners_ = 1;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_INFER_CALL_H_
