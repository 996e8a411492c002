#include "server/rpc/reflection.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/check.h"
#include "kernels/base/mutex.h"
#include "server/rpc/failed_stream.h"
#include "server/rpc/infer_streams.h"
#include "server/rpc/received_message.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

namespace pb = google::protobuf;
using grpc::ByteBuffer;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

constexpr int64_t kMostRequestBytes = 4096;

std::vector<std::string> AllServices() {
  return {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
          "inference.GRPCInferenceService"};
}

// The file and what it imports, each after those.
void AddFiles(const pb::FileDescriptor& file, std::set<const pb::FileDescriptor*>& added,
              grpc::reflection::v1::FileDescriptorResponse& files) {
  if (!added.insert(&file).second) return;
  pb::FileDescriptorProto described;
  file.CopyTo(&described);
  files.add_file_descriptor_proto(described.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), added, files);
}

void SetError(StatusCode code, const char* message, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(static_cast<int>(code));
  response.mutable_error_response()->set_error_message(message);
}

// One call: reads a request, writes its answer, and so on. Guarded by its mutex like StreamInfer's; deletes itself.
class ReflectionStream final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>, public InferStreams::Stream {
 public:
  ReflectionStream(const ServedDescriptors& descriptors, InferCalls& calls, grpc::CallbackServerContext& context)
      : descriptors_(descriptors),
        calls_(calls),
        context_(context),
        under_way_(calls, [&context] { return context.peer(); }) {}

  void Begin() {
    const Status added =
        Contain("open the stream", [this] { return calls_.streams.Add(*this, context_.peer(), calls_.clock.Now()); });
    if (!added.ok()) return End(added);
    const MutexLock lock(mutex_);
    if (!ended_) StartRead(&read_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    const Status answered = Contain("answer", [this] { return Answer(); });
    if (!answered.ok()) return End(answered);
    const MutexLock lock(mutex_);
    if (ended_) return;
    writing_ = true;
    calls_.responses.Start(sending_, [this] { context_.TryCancel(); });
    StartWrite(&written_);
  }

  void OnWriteDone(bool ok) override {
    calls_.responses.Stop(sending_);
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      if (ok && !ending_) return StartRead(&read_);
    }
    End(absl::CancelledError("the client is gone"));
  }

  void OnCancel() override {
    Contain("count the call", [this] {
      calls_.cancelled.Add(context_.peer());
      return absl::OkStatus();
    }).IgnoreError();
    End(absl::CancelledError("the call was cancelled"));
  }
  void OnDone() override {
    calls_.streams.Remove(*this);
    calls_.responses.Stop(sending_);
    delete this;
  }
  void EndInOrder(const Status& why) override { End(why); }

 private:
  // Once an answer that is being written is.
  void End(const Status& status) {
    Status last;
    {
      const MutexLock lock(mutex_);
      if (!std::exchange(ending_, true)) status_ = status;
      if (writing_ || std::exchange(ended_, true)) return;
      last = status_;
    }
    Finish(ToGrpc(last));
  }

  Status Answer() {
    ServerReflectionRequest request;
    SWIZZLE_RETURN_IF_ERROR(Parse(ReceivedMessage(read_), kMostRequestBytes, "ServerReflectionRequest", request));
    ByteBuffer answer = Serialize(descriptors_.Answer(request));
    written_.Swap(&answer);
    return absl::OkStatus();
  }

  const ServedDescriptors& descriptors_;
  InferCalls& calls_;
  grpc::CallbackServerContext& context_;
  const CallUnderWay under_way_;
  ByteBuffer read_, written_;  // gRPC's, or this thread's, in turn
  ResponseWatch::Response sending_;
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // with status_
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ServedDescriptors::ServedDescriptors(const std::vector<std::string>& services) : services_(services) {
  for (const std::string& service : services_) {
    const pb::FileDescriptor* const file = pb::DescriptorPool::generated_pool()->FindFileContainingSymbol(service);
    SWIZZLE_CHECK(file != nullptr);
    Add(*file);
  }
}

void ServedDescriptors::Add(const File& file) {
  if (!files_.insert(&file).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) Add(*file.dependency(i));
}

const pb::FileDescriptor* ServedDescriptors::Find(const ServerReflectionRequest& request) const {
  const pb::DescriptorPool& pool = *pb::DescriptorPool::generated_pool();
  const File* file = nullptr;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      file = pool.FindFileByName(request.file_by_filename());
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      file = pool.FindFileContainingSymbol(request.file_containing_symbol());
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      if (const pb::Descriptor* const type = pool.FindMessageTypeByName(request.all_extension_numbers_of_type())) {
        file = type->file();
      }
      break;
    default:
      break;  // there are no extensions
  }
  return files_.contains(file) ? file : nullptr;
}

ServerReflectionResponse ServedDescriptors::Answer(const ServerReflectionRequest& request) const {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  if (request.message_request_case() == ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET) {
    SetError(StatusCode::kInvalidArgument, "the request asks for nothing that this server knows", response);
    return response;
  }
  if (request.has_list_services()) {
    for (const std::string& service : services_)
      response.mutable_list_services_response()->add_service()->set_name(service);
    return response;
  }
  const File* const file = Find(request);
  if (file == nullptr) {
    SetError(StatusCode::kNotFound, "this server has no such thing", response);
  } else if (request.has_all_extension_numbers_of_type()) {
    response.mutable_all_extension_numbers_response()->set_base_type_name(request.all_extension_numbers_of_type());
  } else {
    std::set<const File*> added;
    AddFiles(*file, added, *response.mutable_file_descriptor_response());
  }
  return response;
}

ReflectionServices::ReflectionServices(InferCalls& calls) : calls_(calls), descriptors_(AllServices()) {
  // Nothing else names the older version's messages, and the linker would leave their file out.
  SWIZZLE_CHECK(grpc::reflection::v1alpha::ServerReflectionRequest::descriptor() != nullptr);
}

ReflectionServices::Reactor* ReflectionServices::Start(grpc::CallbackServerContext& context) {
  const auto stream = Contain("open the stream", [&]() -> StatusOr<ReflectionStream*> {
    return new ReflectionStream(descriptors_, calls_, context);
  });
  if (!stream.ok()) return new FailedStream<>(ToGrpc(stream.status()));
  (*stream)->Begin();
  return *stream;
}

}  // namespace swizzle
