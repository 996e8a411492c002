#include "server/rest/rest_orders.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "server/rest/order_json.h"
#include "server/rest/rest_answer.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// JSON that a thread of HTTP's reads by itself.
constexpr size_t kMostInlineBytes = 64 << 10;

// What KServe's server answers; Triton's clients look at the status alone.
HttpAnswer DoneAnswer(const std::string& model, bool load) {
  using nlohmann::ordered_json;
  const ordered_json answer = {{"name", model}, {load ? "load" : "unload", true}};
  return {.body = {answer.dump(-1, ' ', false, ordered_json::error_handler_t::replace)}};
}

void ReadOrder(ControlService& control, InferCalls& calls, const std::shared_ptr<HttpCall>& call,
               std::shared_ptr<const HttpBody> body, bool load, const std::string& model) {
  const auto done = [&](std::shared_ptr<HeldBytes> held) {
    return [call, model, load, held = std::move(held)](const Status& status) mutable {
      held.reset();  // the service may go once the call has ended
      call->Answer(status.ok() ? DoneAnswer(model, load) : ErrorAnswer(status), nullptr);
    };
  };
  const Status status = Contain("take the order", [&]() -> Status {
    const std::string_view shown = call->head().OnlyHeader("authorization");
    if (!load) {
      SWIZZLE_ASSIGN_OR_RETURN(const auto request, ReadUnloadOrder(body->text(), model));
      return control.Unload(shown, request, done(nullptr));
    }
    const auto bytes = static_cast<int64_t>(body->size);
    SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<HeldBytes> held, control.Hold(bytes, kOrderJsonMemory * bytes));
    SWIZZLE_ASSIGN_OR_RETURN(auto request, ReadLoadOrder(body->text(), model));
    body = nullptr;
    if (held != nullptr) held->HoldAnyway(calls.inflight, bytes);  // its files
    return control.Load(shown, request, done(std::move(held)));
  });
  if (!status.ok()) call->Answer(ErrorAnswer(status), nullptr);
}

}  // namespace

void StartRestOrder(ControlService& control, InferCalls& calls, std::shared_ptr<HttpCall> call, bool load,
                    std::string model) {
  std::shared_ptr<const HttpBody> body = call->TakeBody();
  if (body->size <= kMostInlineBytes) return ReadOrder(control, calls, call, std::move(body), load, model);
  calls.decoders.Add(
      [&control, &calls, call = std::move(call), body = std::move(body), load, model = std::move(model)]() mutable {
        ReadOrder(control, calls, call, std::move(body), load, model);
      });
}

}  // namespace swizzle
