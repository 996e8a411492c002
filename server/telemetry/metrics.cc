#include "server/telemetry/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "kernels/base/mutex.h"
#include "server/http/http_server.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/metric_registry.h"
#include "server/telemetry/model_metrics.h"
#include "server/telemetry/scraped_metrics.h"
#include "server/telemetry/triton_metrics.h"

namespace swizzle {
namespace {

// Each connection has one request. Of too many the oldest makes room, so that those who say nothing, or don't read,
// keep no probe waiting; and there are two threads, so that none waits while metrics are gathered.
constexpr HttpLimits kLimits = {.connections = 256,
                                .head_bytes = 8192,
                                .handshake_time = absl::Seconds(10),
                                .body_time = absl::Seconds(1),
                                .answer_time = absl::Seconds(1),
                                .threads = 2,
                                .one_request = true,
                                .make_room_from = 192};

HttpAnswer TextAnswer(int status, std::string text) {
  HttpAnswer answer = {.status = status, .content_type = "text/plain; charset=utf-8", .body = {std::move(text)}};
  if (status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (status == 405) answer.headers.emplace_back("Allow", "GET, HEAD");
  return answer;
}

class PrometheusMetrics final : public Metrics, private HttpService {
 public:
  explicit PrometheusMetrics(Clock& clock) : clock_(clock) {
    registry_.Child<"swizzle_build_info">(SWIZZLE_VERSION, __VERSION__).Set(1);
  }

  Status Listen(const std::string& address) {
    SWIZZLE_ASSIGN_OR_RETURN(listener_, HttpServer::Start(address, kLimits, *this, nullptr));
    return absl::OkStatus();
  }

  std::unique_ptr<ModelMetrics> ForModel(const ModelSpec& spec, const ModelFacts& facts,
                                         absl::Duration load_time) override {
    registry_.Child<"swizzle_model_load_failures_total">(
        spec.name);  // at 0, so that a first failure is seen as an increase
    return versions_.Enter(spec, facts, load_time);
  }
  void RecordLoadFailure(std::string_view model) override {
    registry_.Child<"swizzle_model_load_failures_total">(model).Increment();
  }
  void RecordUnserved(std::string_view model, int64_t version, StatusCode code) override {
    versions_.CountUnserved(model, version, code);
  }
  void ShowGpuMemory(std::function<std::vector<GpuMemory>()> ask) override { gpus_.Ask(std::move(ask)); }
  void ShowClientLoad(std::function<ClientLoad()> ask) override { clients_.Ask(std::move(ask)); }
  void AskForTokens(const Authorization& authorization) override { authorization_ = &authorization; }
  void ShowSampled(std::function<SampledCounts()> ask) override { sampled_.Ask(std::move(ask)); }
  void ShowGpuSensors(std::unique_ptr<GpuSensors> sensors) override { sensors_.Ask(std::move(sensors)); }
  void ShowStatus(std::string page, std::function<std::string()> ask) override {
    const MutexLock lock(mutex_);
    page_ = std::move(page);
    status_ = std::move(ask);
  }
  void ShowTritonNames() override { shows_triton_ = true; }
  void SetLive(bool live) override { live_ = live; }
  void SetReady(bool ready, std::string why) override {
    const MutexLock lock(mutex_);
    ready_ = ready;
    not_ready_ = std::move(why);
  }
  void SetStarted(bool started) override { started_ = started; }
  const Activity& activity() const override { return activity_; }
  int port() const override { return listener_->port(); }

  std::string Text() const override {
    std::vector<prometheus::MetricFamily> families = registry_.Collect();
    for (auto& family : CollectProcessMetrics()) families.push_back(std::move(family));
    for (auto& family : gpus_.Collect()) families.push_back(std::move(family));
    for (auto& family : clients_.Collect()) families.push_back(std::move(family));
    for (auto& family : sampled_.Collect()) families.push_back(std::move(family));
    for (auto& family : sensors_.Collect(shows_triton_)) families.push_back(std::move(family));
    if (shows_triton_) {
      for (auto& family : CollectTritonMetrics(versions_.Totals())) families.push_back(std::move(family));
    }
    return prometheus::TextSerializer().Serialize(families);
  }

 private:
  HttpAdmission Admit(const HttpHead& head) override {
    if (head.method == "GET" || head.method == "HEAD") return {};
    return {.refusal = TextAnswer(405, "only GET and HEAD are served here\n")};
  }
  HttpAnswer Error(int status, const std::string& why) override { return TextAnswer(status, Concat(why, "\n")); }

  void Take(std::shared_ptr<HttpCall> call) override {
    StatusOr<HttpAnswer> answer = Contain("answer", [&]() -> StatusOr<HttpAnswer> { return Answer(call->head()); });
    if (!answer.ok()) answer = TextAnswer(503, "");
    answer->headers.emplace_back("Cache-Control", "no-store");
    call->Answer(*std::move(answer), nullptr);
  }

  Status CheckClass(AccessClass needed, const HttpHead& head) const {
    const Authorization* const authorization = authorization_;
    if (authorization == nullptr) return absl::OkStatus();
    return authorization->CheckClass(needed, head.OnlyHeader("authorization"));
  }

  HttpAnswer Answer(const HttpHead& head) const {
    const std::string path = head.target.substr(0, head.target.find('?'));
    constexpr std::array<std::string_view, 6> kServed = {"/", "/status", "/metrics", "/livez", "/readyz", "/startupz"};
    const std::optional<AccessRule> rule = FindAccessRule(path);
    if (!rule.has_value() || std::ranges::find(kServed, path) == kServed.end())
      return TextAnswer(404, "served here: / /status /metrics /livez /readyz /startupz\n");
    if (const Status allowed = CheckClass(rule->needs, head); !allowed.ok()) {
      return TextAnswer(absl::IsUnauthenticated(allowed) ? 401 : 403, Concat(std::string(allowed.message()), "\n"));
    }
    if (path == "/metrics") return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = {Text()}};
    if (path == "/" || path == "/status") return StatusOfServer(path == "/");
    if (path == "/livez") return Probe(live_, "live");
    if (path == "/readyz") return Ready(CheckClass(AccessClass::kMetrics, head).ok());
    return Probe(started_, "started");
  }

  // Under the lock: what is asked goes once there is something else, or nothing, to ask.
  HttpAnswer StatusOfServer(bool page) const {
    const MutexLock lock(mutex_);
    if (status_ == nullptr) return Probe(false, "started");
    if (page) return {.content_type = "text/html; charset=utf-8", .body = {page_}};
    return {.content_type = "application/json", .body = {status_()}};
  }

  // `why`: which models are not, and for what reason.
  HttpAnswer Ready(bool why) const {
    const MutexLock lock(mutex_);
    HttpAnswer answer = Probe(ready_, "ready");
    if (why) answer.body.push_back(not_ready_);
    return answer;
  }

  static HttpAnswer Probe(bool holds, std::string_view what) {
    return holds ? TextAnswer(200, "ok\n") : TextAnswer(503, Concat("not ", what, "\n"));
  }

  Clock& clock_;
  MetricRegistry registry_;
  GpuMetrics gpus_;
  GpuSensorMetrics sensors_;
  ClientMetrics clients_;
  std::atomic<const Authorization*> authorization_ = nullptr;  // null: everybody may see everything
  SampledMetrics sampled_;
  std::atomic<bool> shows_triton_ = false;
  std::atomic<bool> live_ = true;
  std::atomic<bool> started_ = false;
  mutable Mutex mutex_;
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::string not_ready_ ABSL_GUARDED_BY(mutex_);
  std::string page_ ABSL_GUARDED_BY(mutex_);
  std::function<std::string()> status_ ABSL_GUARDED_BY(mutex_);
  Activity activity_;
  VersionRecords versions_{registry_, clock_, activity_};
  std::unique_ptr<HttpServer> listener_;  // last: its threads use all of the above
};

}  // namespace

StatusOr<std::unique_ptr<Metrics>> NewMetrics(const std::string& address, Clock& clock) {
  auto metrics = std::make_unique<PrometheusMetrics>(clock);
  SWIZZLE_RETURN_IF_ERROR(Annotate(metrics->Listen(address), "metrics"));
  return metrics;
}

}  // namespace swizzle
