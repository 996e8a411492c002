#include "server/rpc/infer_call.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "server/libraries/versions.h"
#include "server/model/prepared_request.h"
#include "server/rpc/classification.h"
#include "server/rpc/wire_convert.h"
#include "server/rpc/wire_response.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

using google::protobuf::io::ZeroCopyInputStream;

// What a thread of gRPC's reads by itself, at about 1 GB/s.
constexpr int64_t kMostInlineBytes = 1 << 20;

// A connection by what its other end is called. Two may have the same number: then they share what one may have.
uint64_t NumberOf(const std::string& peer) { return std::max<uint64_t>(std::hash<std::string>()(peer), 1); }

void Count(std::atomic<int64_t>& calls) { calls.fetch_add(1, std::memory_order_relaxed); }

// As Triton calls it.
void MarkFinal(bool final, inference::ModelInferResponse& message) {
  (*message.mutable_parameters())["triton_final_response"].set_bool_param(final);
}

int Decoders() { return std::clamp(AvailableCpus() / 4, 1, 8); }

}  // namespace

InferCalls::InferCalls(const RpcLimits& all_limits, Clock& of_server, Repository to_ask)
    : limits(all_limits),
      clock(of_server),
      repository(std::move(to_ask)),
      message_limits(ServerLimits(all_limits.max_message_bytes)),
      responses(all_limits.response_timeout, of_server),
      cancelled(4 * int64_t{all_limits.max_streams}, of_server),
      unfinished(2 * int64_t{all_limits.max_streams}),
      shared_memory(all_limits.shared_memory_prefix, all_limits.shared_memory_bytes),
      decoders(Decoders()) {}

Status InferCalls::CheckModel(std::string_view model, Shown shown) const {
  return authorization->limits_models() ? authorization->CheckModel(model, shown()) : absl::OkStatus();
}

StatusOr<std::shared_ptr<ServingModel>> InferCalls::Find(std::string_view model, Shown shown) const {
  SWIZZLE_RETURN_IF_ERROR(CheckModel(model, shown));
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* models, repository());
  auto found = models->Find(model, "");
  if (!found.ok()) models->CountUnserved(model, found.status().code());
  return found;
}

CallUnderWay::CallUnderWay(InferCalls& calls, absl::FunctionRef<std::string()> peer) : calls_(calls) {
  if (++calls_.under_way <= calls_.limits.max_streams) return;
  unfinished_of_ = peer();
  calls_.unfinished.Begin(unfinished_of_);
}

CallUnderWay::~CallUnderWay() {
  --calls_.under_way;
  if (!unfinished_of_.empty()) calls_.unfinished.End(unfinished_of_);
}

InferCall::InferCall(InferCalls& calls, const grpc::ByteBuffer& request, Carrier carrier)
    : calls_(calls),
      received_(request),
      start_(calls.clock.Now()),
      carrier_(carrier),
      request_(NewMessage<inference::ModelInferRequest>(request_memory_.arena())) {}

void InferCall::Start() {
  const Status status = Contain("take the request", [this] { return Begin(); });
  if (!status.ok()) Conclude(status);
}

void InferCall::Cancel() {
  cancelled_.store(true);
  Contain("cancel the request", [this] {
    if (const Ticket ticket = ticket_.load(); ticket != 0) serving_->batcher->Cancel(ticket);
    return absl::OkStatus();
  }).IgnoreError();
}

std::string InferCall::Id() const {
  if (parsed_) return request_ == nullptr ? "" : request_->id();
  return received_.Decompressed([this](ZeroCopyInputStream& in) { return RequestId(in, calls_.message_limits.bytes); });
}

Status InferCall::Begin() {
  if (calls_.sampler != nullptr) {
    sample_ = calls_.sampler->Begin(start_, [this](std::string_view name) { return Header(name); });
    if (sample_ != nullptr) sample_->streamed = carrier_.any_answers;
  }
  if (received_.wire_bytes() >= ConnectionBytes::kLeastCounted) {
    connection_ = calls_.connections.Of(Peer());
    connection_->whole.fetch_add(received_.wire_bytes(), std::memory_order_relaxed);
  }
  SWIZZLE_RETURN_IF_ERROR(Hold(held_, received_.wire_bytes()));
  if (!received_.compressed() && received_.wire_bytes() <= kMostInlineBytes) {
    Take();
    return absl::OkStatus();
  }
  Retain();
  Status added = Contain("take the request", [this] {
    calls_.decoders.Add([this] {
      Take();
      Release();
    });
    return absl::OkStatus();
  });
  if (!added.ok()) Release();  // whoever calls this holds it as well
  return added;
}

void InferCall::Take() {
  const Status status = Contain("take the request", [this] { return Submit(); });
  if (!status.ok()) Conclude(status);
}

// Hands the request to the batcher. Who calls Start holds this object, and so does a decoder, so that it is there to
// the end, however early the batcher is done.
Status InferCall::Submit() {
  if (cancelled_.load()) return absl::CancelledError("the call was cancelled");
  deadline_ = std::min(AskedDeadline(), start_ + calls_.limits.max_deadline);
  SWIZZLE_RETURN_IF_ERROR(Read());
  if (sample_ != nullptr) sample_->SetId(request_->id());
  if (calls_.refusing.load(std::memory_order_relaxed)) {
    serving_->metrics->RecordRejected(Rejection::kDraining, absl::ZeroDuration());
    return MakeError(StatusCode::kUnavailable, "the server is shutting down");
  }
  if (spec().decoupled && !carrier_.any_answers) {
    return Unimplemented("model '", spec().name,
                         "' is decoupled: a request has any number of answers, and this call takes one; use "
                         "ModelStreamInfer");
  }
  const SharedRegions* const shared = calls_.shared_memory.enabled() ? &calls_.shared_memory : nullptr;
  if (shared != nullptr) SWIZZLE_RETURN_IF_ERROR(HoldShared());
  SWIZZLE_ASSIGN_OR_RETURN(DecodedInfer decoded, DecodeInfer(*request_, spec(), start_, shared));
  outputs_ = std::move(decoded.outputs);
  marks_final_ = decoded.marks_final;
  shared_outputs_ = std::move(decoded.shared_outputs);
  if (spec().decoupled && !shared_outputs_.empty()) {
    return InvalidArgument("model '", spec().name,
                           "' is decoupled: its answers would overwrite each other in shared memory");
  }
  Request& request = decoded.request;
  SWIZZLE_RETURN_IF_ERROR(CheckResponse(request));
  SWIZZLE_RETURN_IF_ERROR(PrepareRequest(*serving_->model, request));
  text_tokens_ = request.text_tokens;
  request.deadline = std::min(request.deadline, deadline_);
  request.connection = peer_;
  request.budget = this;
  if (sample_ != nullptr) sample_->Attach(request);
  if (spec().decoupled) request.answers = this;
  SWIZZLE_ASSIGN_OR_RETURN(
      const Ticket ticket,
      serving_->batcher->Submit(std::move(request), [this](StatusOr<Result> result) { OnResult(std::move(result)); }));
  ticket_.store(ticket);
  if (cancelled_.load()) serving_->batcher->Cancel(ticket);
  return absl::OkStatus();
}

// The message, once it is known to be worth its memory; gRPC's copy goes.
Status InferCall::Read() {
  SWIZZLE_ASSIGN_OR_RETURN(const WireSurvey survey, Survey());
  request_bytes_ = std::max(survey.bytes, survey.parsed_bytes);
  SWIZZLE_RETURN_IF_ERROR(Hold(held_, request_bytes_));
  if (deadline_ <= start_) return absl::DeadlineExceededError("the request came after its deadline");
  peer_ = NumberOf(Peer());
  SWIZZLE_RETURN_IF_ERROR(serving_->batcher->CheckRoom(peer_, deadline_));
  if (Status parsed = Parse(received_, survey.bytes, "ModelInferRequest", *request_); !parsed.ok()) {
    malformed_ = true;
    Count(calls_.refused.malformed);
    return parsed;
  }
  parsed_ = true;
  received_.Drop();
  if (request_->model_version().empty() && request_->model_name() == spec().name) return absl::OkStatus();
  SWIZZLE_RETURN_IF_ERROR(
      calls_.CheckModel(request_->model_name(), [this] { return Shown(); }));  // a message may name two
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, calls_.repository());
  // An error is counted for the latest version.
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<ServingModel> found,
                           repository->Find(request_->model_name(), request_->model_version()));
  if (found == serving_) return absl::OkStatus();
  held_.model.Clear();
  serving_ = std::move(found);
  return Hold(held_, request_bytes_);
}

StatusOr<MessageLimits> InferCall::LimitsFor(std::string_view model) {
  SWIZZLE_ASSIGN_OR_RETURN(serving_, calls_.Find(model, [this] { return Shown(); }));
  return ModelLimits(spec(), calls_.message_limits);
}

StatusOr<WireSurvey> InferCall::Survey() {
  WireSurvey survey;
  const Status status = received_.Decompressed([&](ZeroCopyInputStream& in) {
    return SurveyInfer(
        in, calls_.message_limits, [this](std::string_view model) { return LimitsFor(model); }, survey);
  });
  if (status.ok()) return survey;
  malformed_ = survey.malformed;
  if (malformed_) Count(calls_.refused.malformed);
  too_large_ = survey.too_large;
  if (too_large_) Count(calls_.refused.too_large);
  return status;
}

// Of the connection, the server and, once that is known, the model.
Status InferCall::Hold(HeldOfAll& held, int64_t bytes) {
  const RpcLimits& limits = calls_.limits;
  bytes = std::max(bytes, carrier_.least_bytes);
  if (connection_ == nullptr && bytes >= ConnectionBytes::kLeastCounted) {
    connection_ = calls_.connections.Of(Peer());
  }
  if (connection_ != nullptr && !held.connection.Hold(*connection_, bytes, limits.max_connection_inflight_bytes)) {
    return NoRoom("the connection", *connection_, limits.max_connection_inflight_bytes);
  }
  if (!held.server.Hold(calls_.inflight, bytes, limits.max_inflight_bytes)) {
    return NoRoom("the server", calls_.inflight, limits.max_inflight_bytes);
  }
  if (serving_ == nullptr || held.model.Hold(serving_->inflight, bytes, limits.max_model_inflight_bytes)) {
    return absl::OkStatus();
  }
  return NoRoom(Concat("model '", spec().name, "'"), serving_->inflight, limits.max_model_inflight_bytes);
}

// Likewise, room or not: the bytes are there.
void InferCall::HoldAnyway(int64_t bytes) {
  bytes = std::max(bytes, carrier_.least_bytes);
  held_.server.HoldAnyway(calls_.inflight, bytes);
  if (connection_ != nullptr) held_.connection.HoldAnyway(*connection_, bytes);
  held_.model.HoldAnyway(serving_->inflight, bytes);
}

Status InferCall::NoRoom(const std::string& whose, const InflightBytes& account, int64_t most) {
  Count(calls_.refused.inflight_bytes);
  const int64_t held = account.held();
  return MakeError(StatusCode::kResourceExhausted, whose, " has requests and responses of ", held,
                   " bytes in flight, and takes at most ", most, "; try again later");
}

// Inputs in shared memory are copied, and count like those in messages.
Status InferCall::HoldShared() {
  const int64_t shared = SharedInputBytes(*request_);
  if (shared == 0) return absl::OkStatus();
  if (const int64_t most = calls_.limits.max_message_bytes; shared > most) {
    Count(calls_.refused.too_large);
    return MakeError(StatusCode::kResourceExhausted, "the request has inputs of ", shared,
                     " bytes in shared memory, and this server takes at most ", most);
  }
  request_bytes_ += shared;
  return Hold(held_, request_bytes_);
}

// Before anything is computed: a response that cannot be sent, or has no room.
Status InferCall::CheckResponse(const Request& request) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t bytes,
                           ResponseBytes(spec(), request, outputs_, calls_.limits.max_response_bytes));
  promised_bytes_ = request_bytes_ + bytes;
  return Hold(held_, promised_bytes_);
}

// While the batcher has the request, nobody else changes what it holds.
Status InferCall::Add(int64_t bytes) {
  const MutexLock lock(added_mutex_);
  SWIZZLE_RETURN_IF_ERROR(Hold(held_, promised_bytes_ + added_bytes_ + bytes));
  added_bytes_ += bytes;
  return absl::OkStatus();
}

void InferCall::OnResult(StatusOr<Result> result) {
  Status status = result.status();
  if (status.ok()) status = emitted_;
  if (status.ok() && deadline_ <= calls_.clock.Now()) {
    status = absl::DeadlineExceededError("the request's deadline passed while it ran");
  }
  if (status.ok()) status = Contain("write the answer", [&] { return Write(*std::move(result)); });
  Conclude(status);
}

Status InferCall::Write(Result result) {
  if (spec().decoupled) {
    if (!marks_final_) return absl::OkStatus();
    outputs_.clear();
  } else {
    SWIZZLE_RETURN_IF_ERROR(Classify(spec(), outputs_, result));
    SWIZZLE_RETURN_IF_ERROR(CheckResult(spec(), result, outputs_, calls_.limits.max_response_bytes));
  }
  SWIZZLE_RETURN_IF_ERROR(WriteShared(result));
  const int64_t bytes = BytesOf(result);
  HoldAnyway(request_bytes_ + bytes);
  auto* message = NewMessage<inference::ModelInferResponse>(response_memory_.arena());
  EncodeInfer(*request_, spec(), outputs_, std::move(result), *message);
  NameShared(*message);
  if (text_tokens_ > 0) (*message->mutable_parameters())["swizzle_tokens"].set_int64_param(text_tokens_);
  if (marks_final_) MarkFinal(true, *message);
  Answer(*message, nullptr);
  DropRequest();
  HoldAnyway(bytes);
  return absl::OkStatus();
}

// What is written there leaves the message; its output stays in it, empty, as Triton has it.
Status InferCall::WriteShared(Result& result) {
  for (size_t i = 0; i < shared_outputs_.size(); ++i) {
    const SharedBytes& shared = shared_outputs_[i];
    if (shared.region == nullptr) continue;
    std::string& output = result.outputs[outputs_[i].index];
    if (static_cast<int64_t>(output.size()) > shared.bytes) {
      return InvalidArgument("output '", spec().outputs[outputs_[i].index].name, "' of model '", spec().name, "' has ",
                             output.size(), " bytes, and its place in shared memory ", shared.bytes);
    }
    SWIZZLE_RETURN_IF_ERROR(shared.region->Write(shared.offset, std::as_bytes(std::span(output))));
    shared_outputs_[i].bytes = static_cast<int64_t>(output.size());
    output = std::string();
  }
  return absl::OkStatus();
}

void InferCall::NameShared(inference::ModelInferResponse& message) const {
  for (size_t i = 0; i < shared_outputs_.size(); ++i) {
    const SharedBytes& shared = shared_outputs_[i];
    if (shared.region == nullptr) continue;
    shared.NameIn(*message.mutable_outputs(static_cast<int>(i))->mutable_parameters());
  }
}

bool InferCall::Emit(std::vector<std::string> outputs, std::vector<Shape> shapes) {
  if (!emitted_.ok()) return false;
  if (cancelled_.load(std::memory_order_relaxed)) {
    emitted_ = absl::CancelledError("the request was cancelled while it ran");
  } else if (deadline_ <= calls_.clock.Now()) {
    emitted_ = absl::DeadlineExceededError("the request's deadline passed while it ran");
  } else {
    emitted_ = Contain("write an answer", [&] {
      Result result;
      result.outputs = std::move(outputs);
      result.shapes = std::move(shapes);
      return WriteOneOfMany(std::move(result));
    });
  }
  return emitted_.ok();
}

// One that more may follow. Whoever reads them too slowly has no room for the next.
Status InferCall::WriteOneOfMany(Result result) {
  constexpr int64_t kBesideOutputs = 512;
  SWIZZLE_RETURN_IF_ERROR(Classify(spec(), outputs_, result));
  SWIZZLE_RETURN_IF_ERROR(CheckResult(spec(), result, outputs_, calls_.limits.max_response_bytes));
  auto held = std::make_unique<HeldOfAll>();
  SWIZZLE_RETURN_IF_ERROR(Hold(*held, BytesOf(result) + kBesideOutputs));
  begun_ = true;
  inference::ModelInferResponse message;
  EncodeInfer(*request_, spec(), outputs_, std::move(result), message);
  message.clear_parameters();  // times, which only the end knows
  if (marks_final_) MarkFinal(false, message);
  Answer(message, std::move(held));
  return absl::OkStatus();
}

// Before the answer goes: a client's next request then takes the memory of its last one, and not as much beside it.
void InferCall::DropRequest() {
  request_ = nullptr;
  request_memory_.arena().Reset();
}

// The last thing done with this call: it may be gone from here on.
void InferCall::Conclude(const Status& status) {
  if (serving_ != nullptr) serving_->metrics->RecordRequest(status.code(), calls_.clock.Now() - start_);
  if (sample_ != nullptr) {
    calls_.sampler->End(std::move(sample_), serving_ == nullptr ? nullptr : &spec(), status.code(), calls_.clock.Now());
  }
  End(status);
}

}  // namespace swizzle
