#include "server/http/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/status.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

using boost::system::error_code;
using Protocol = net::generic::stream_protocol;
using Strand = net::strand<net::io_context::executor_type>;
using PlainStream = beast::basic_stream<Protocol, Strand>;
using TlsStream = beast::ssl_stream<PlainStream>;

constexpr size_t kReadBytes = 8 << 10;                  // at least, of a head
constexpr size_t kPieceBytes = 512 << 10;               // at most, of a body
constexpr absl::Duration kFarewell = absl::Seconds(1);  // for a client to read a last answer

std::string HeadOf(const HttpAnswer& answer, bool keep, bool old) {
  size_t length = 0;
  for (const std::string& piece : answer.body) length += piece.size();
  std::string text = Concat("HTTP/1.1 ", answer.status, " ",
                            std::string(http::obsolete_reason(static_cast<http::status>(answer.status))),
                            "\r\nContent-Type: ", answer.content_type, "\r\nContent-Length: ", length, "\r\n");
  for (const auto& [name, value] : answer.headers) text += Concat(name, ": ", value, "\r\n");
  if (!keep) text += "Connection: close\r\n";
  if (keep && old) text += "Connection: keep-alive\r\n";
  return text + "\r\n";
}

template <typename Stream>
class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <typename... Args>
  Connection(HttpConnections& all, HttpLoop& loop, std::shared_ptr<net::ssl::context> tls, Args&&... args)
      : all_(all),
        tls_(std::move(tls)),
        listed_(all, loop),
        of_age_(all.DrawAge()),
        stream_(std::forward<Args>(args)...) {}

  void Start() override {
    all_.Add(listed_.number, this->weak_from_this());
    OnStrand([](Connection& its) { its.Begin(); });
  }
  void EndIdle() override {
    OnStrand([](Connection& its) { its.EndWait(); });
  }
  void EndForRoom() override {
    makes_room = true;
    OnStrand([](Connection& its) {
      if (!its.idle_) return its.Close();
      its.makes_room = false;  // else whoever has begun to ask would stay for as long as a head may take
      its.EndWait();
    });
  }
  void End() override {
    OnStrand([](Connection& its) { its.Close(); });
  }

 private:
  class Call;
  using Parser = http::request_parser<http::buffer_body>;

  // An answer is written by one call to the system, where Asio itself would write 64 KiB. TLS copies what it is given,
  // and encrypts 16 KiB of it.
  static constexpr size_t kMostWritten =
      std::is_same_v<Stream, TlsStream> ? 64 << 10 : std::numeric_limits<size_t>::max();

  PlainStream& lowest() { return beast::get_lowest_layer(stream_); }

  // What throws, where memory runs out or in a callback, ends the connection: what else it waits for would keep it.
  template <typename Function>
  void Contain(Function&& function) {
    try {
      function();
    } catch (...) {
      Close();
    }
  }
  // Runs it where nothing else of this connection runs; at once, if this is there.
  template <typename Function>
  void OnStrand(Function function) {
    net::dispatch(stream_.get_executor(), [self = this->shared_from_this(), function = std::move(function)]() mutable {
      self->Contain([&] { function(*self); });
    });
  }
  // What is called when something that was begun has ended.
  template <typename Member>
  auto Then(Member member) {
    return [self = this->shared_from_this(), member](error_code error, size_t bytes = 0) {
      self->Contain([&] { ((*self).*member)(error, bytes); });
    };
  }
  void ExpireAfter(absl::Duration time) {
    if (time == absl::ZeroDuration()) return lowest().expires_never();
    lowest().expires_after(absl::ToChronoNanoseconds(std::min(time, absl::Hours(24))));
  }

  // Ends the wait for a request. What has come already, even if nobody has looked at it yet, is still answered.
  void EndWait() {
    error_code ignored;
    if (idle_ && lowest().socket().available(ignored) == 0) lowest().cancel();
  }

  void Begin() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      ExpireAfter(all_.limits.handshake_time);
      stream_.async_handshake(net::ssl::stream_base::server, Then(&Connection::OnHandshake));
    } else {
      OnHandshake({}, 0);
    }
  }
  void OnHandshake(error_code error, size_t) {
    if (error) return Close(error);
    ReadRequest(all_.limits.handshake_time);
  }

  // ---- A request ----

  void ReadRequest(absl::Duration patience) {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(all_.limits.head_bytes));
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    if (buffer_.size() > 0) return ReadHead();
    idle_ = true;
    ExpireAfter(patience);
    stream_.async_read_some(buffer_.prepare(kReadBytes), Then(&Connection::OnFirstBytes));
  }
  void OnFirstBytes(error_code error, size_t bytes) {
    idle_ = false;
    if (error == beast::error::timeout && asked_) all_.ended_idle.fetch_add(1, std::memory_order_relaxed);
    if (error) return Close();  // it is idle, or has left
    buffer_.commit(bytes);
    ReadHead();
  }
  void ReadHead() {
    ExpireAfter(all_.limits.handshake_time);
    http::async_read_header(stream_, buffer_, *parser_, Then(&Connection::OnHead));
  }

  void OnHead(error_code error, size_t) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return Refuse(431, Concat("the head of the request has more than ", all_.limits.head_bytes, " bytes"));
    }
    if (error == http::error::end_of_stream || error == http::error::partial_message) return Close();
    if (error.category() == http::make_error_code(http::error::bad_method).category()) {
      return Refuse(400, "this is no request of HTTP/1.1");
    }
    if (error) return Close(error);
    all_.requests.fetch_add(1, std::memory_order_relaxed);
    asked_ = true;
    const auto& message = parser_->get();
    head_ = {.method = std::string(message.method_string()), .target = std::string(message.target()), .headers = {}};
    for (const auto& field : message) {
      std::string name(field.name_string());
      std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
      head_.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    old_ = message.version() < 11;
    keep_ = parser_->keep_alive() && !all_.limits.one_request;
    Admit();
  }

  void Admit() {
    HttpAdmission admission = all_.service.Admit(head_);
    if (admission.refusal) {
      keep_ = keep_ && parser_->is_done();  // what would follow is no request
      return Write(*std::move(admission.refusal), nullptr);
    }
    most_ = static_cast<size_t>(admission.most_body_bytes);
    body_ = std::make_shared<HttpBody>();
    capacity_ = 0;
    if (parser_->is_done()) return Take();
    const auto length = parser_->content_length();
    if (length && *length > most_) return RefuseLarge();
    length_ = length ? static_cast<size_t>(*length) : 0;
    chunked_ = !length;
    ExpireAfter(all_.limits.body_time);
    const std::string_view expected = head_.Header("expect");
    if (beast::iequals({expected.data(), expected.size()}, "100-continue")) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      return net::async_write(stream_, net::buffer(kContinue.data(), kContinue.size()), Then(&Connection::OnContinue));
    }
    ReadPiece();
  }
  void OnContinue(error_code error, size_t) { error ? Close(error) : ReadPiece(); }

  // Room for the next piece of the body. False if the request was refused.
  bool MakeRoom() {
    HttpBody& body = *body_;
    if (body.size == capacity_) {
      const size_t wanted = chunked_ ? std::min(std::max(2 * capacity_, kReadBytes), most_ + 1) : length_;
      auto more = std::make_unique_for_overwrite<char[]>(wanted);
      std::copy_n(body.bytes.get(), body.size, more.get());
      body.bytes = std::move(more);
      capacity_ = wanted;
    }
    piece_ = std::min(capacity_ - body.size, kPieceBytes);
    if (body.held.Hold(all_.bodies, static_cast<int64_t>(body.size + piece_), all_.limits.body_bytes)) return true;
    Refuse(503, Concat("requests of ", all_.bodies.held(), " bytes are on their way, and the server takes at most ",
                       all_.limits.body_bytes, "; try again later"));
    return false;
  }

  // Where the length is known, bytes need no parser, and no copy but of those that came with the head.
  void ReadPiece() {
    if (!MakeRoom()) return;
    char* const place = body_->bytes.get() + body_->size;
    if (chunked_) {
      parser_->get().body() = {place, piece_, true};
      return http::async_read(stream_, buffer_, *parser_, Then(&Connection::OnChunks));
    }
    if (buffer_.size() > 0) {
      const size_t copied = net::buffer_copy(net::buffer(place, piece_), buffer_.data());
      buffer_.consume(copied);
      return OnPiece({}, copied);
    }
    stream_.async_read_some(net::buffer(place, piece_), Then(&Connection::OnPiece));
  }
  void OnPiece(error_code error, size_t bytes) {
    if (error) return CloseSlow(error);
    body_->size += bytes;
    body_->size == length_ ? Take() : ReadPiece();
  }
  void OnChunks(error_code error, size_t) {
    if (error == http::error::need_buffer) error = {};
    if (error && error.category() == http::make_error_code(http::error::bad_chunk).category() &&
        error != http::error::partial_message) {
      return Refuse(400, "the body's chunks are malformed");
    }
    if (error) return CloseSlow(error);
    body_->size += piece_ - parser_->get().body().size;
    if (body_->size > most_) return RefuseLarge();
    parser_->is_done() ? Take() : ReadPiece();
  }

  // ---- Its answer ----

  void Take();

  void RefuseLarge() {
    Refuse(413, Concat("the body has more than ", most_, " bytes, the most that this server takes of this request"));
  }
  void Refuse(int status, const std::string& why) {
    keep_ = false;
    body_ = nullptr;
    Write(all_.service.Error(status, why), nullptr);
  }

  // Hears whether the client leaves, without reading what it may send.
  void Watch() {
    if (std::exchange(watching_, true)) return;
    lowest().socket().async_wait(net::socket_base::wait_read, Then(&Connection::OnReadable));
  }
  void OnReadable(error_code error, size_t) {
    watching_ = false;
    if (error || !answering) return;
    char byte;
    const ssize_t got = recv(lowest().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
    Leave();
  }
  void Leave() {
    left_ = true;
    if (auto on_left = std::exchange(on_left_, nullptr)) on_left();
  }

  // Requests that have come behind this one are answered before.
  bool IsOfAge() const { return buffer_.size() == 0 && Clock::Real().Now() >= of_age_; }

  void Write(HttpAnswer answer, std::function<void()> sent) {
    answering = false;
    on_left_ = nullptr;
    sent_ = std::move(sent);
    keep_ = keep_ && !all_.draining;
    if (keep_ && IsOfAge()) {
      keep_ = false;
      all_.ended_aged.fetch_add(1, std::memory_order_relaxed);
    }
    answer_ = std::move(answer);
    head_text_ = HeadOf(answer_, keep_, old_);
    std::vector<net::const_buffer> buffers = {net::buffer(head_text_)};
    if (head_.method != "HEAD") {
      for (const std::string& piece : answer_.body) buffers.push_back(net::buffer(piece));
    }
    ExpireAfter(all_.limits.answer_time);
    const auto most = [](error_code error, size_t) { return error ? 0 : kMostWritten; };
    net::async_write(stream_, buffers, most, Then(&Connection::OnWritten));
  }
  void OnWritten(error_code error, size_t) {
    answer_ = {};
    if (auto sent = std::exchange(sent_, nullptr)) sent();
    if (error) return CloseSlow(error);
    if (!keep_) return SayFarewell();
    ReadRequest(all_.limits.idle_time);
  }

  // Closing with unread input would reset the connection, and the client might lose the answer.
  void SayFarewell() {
    ExpireAfter(kFarewell);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_shutdown(Then(&Connection::OnFarewell));
    } else {
      error_code ignored;
      stream_.socket().shutdown(net::socket_base::shutdown_send, ignored);
      Discard();
    }
  }
  void OnFarewell(error_code, size_t) { Close(); }
  void Discard() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kReadBytes), Then(&Connection::OnDiscarded));
  }
  void OnDiscarded(error_code error, size_t) { error ? Close() : Discard(); }

  void CloseSlow(error_code error) {
    if (error == beast::error::timeout) all_.ended_slow.fetch_add(1, std::memory_order_relaxed);
    Close();
  }
  void Close(error_code error) { CloseSlow(error); }
  void Close() {
    lowest().close();
    Leave();
  }

  // Until all that uses Asio has gone.
  struct Listed {
    HttpConnections& all;
    HttpLoop& loop;
    const int64_t number;
    Listed(HttpConnections& its, HttpLoop& its_loop) : all(its), loop(its_loop), number(++its.numbered) {
      ++loop.connections;
    }
    ~Listed() {
      --loop.connections;
      all.Remove(number);
    }
  };

  HttpConnections& all_;
  const std::shared_ptr<net::ssl::context> tls_;  // before the stream, which uses it
  const Listed listed_;
  const Instant of_age_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpHead head_;
  std::shared_ptr<HttpBody> body_;
  size_t most_ = 0, length_ = 0, capacity_ = 0, piece_ = 0;
  bool chunked_ = false, old_ = false, keep_ = false, idle_ = false, asked_ = false;
  bool watching_ = false, left_ = false;
  std::function<void()> on_left_, sent_;
  HttpAnswer answer_;
  std::string head_text_;
};

template <typename Stream>
class Connection<Stream>::Call final : public HttpCall {
 public:
  explicit Call(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)), head_(connection_->head_), body_(std::move(connection_->body_)) {}
  ~Call() override {
    if (!answered_) connection_->End();
  }

  const HttpHead& head() const override { return head_; }
  std::string peer() const override { return Concat("http:", connection_->listed_.number); }
  std::shared_ptr<const HttpBody> TakeBody() override { return std::move(body_); }
  void OnLeft(std::function<void()> left) override {
    connection_->OnStrand([left = std::move(left)](Connection& its) {
      if (its.left_) return left();
      its.on_left_ = left;
    });
  }
  void Answer(HttpAnswer answer, std::function<void()> sent) override {
    answered_ = true;
    connection_->OnStrand([answer = std::move(answer), sent = std::move(sent)](Connection& its) mutable {
      its.Write(std::move(answer), std::move(sent));
    });
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const HttpHead head_;
  std::shared_ptr<HttpBody> body_;
  bool answered_ = false;
};

template <typename Stream>
void Connection<Stream>::Take() {
  parser_.reset();
  ExpireAfter(absl::ZeroDuration());
  answering = true;
  Watch();
  all_.service.Take(std::make_shared<Call>(this->shared_from_this()));
}

}  // namespace

std::shared_ptr<HttpConnection> NewHttpConnection(HttpConnections& all, int descriptor,
                                                  std::shared_ptr<net::ssl::context> tls) {
  sockaddr_storage name = {};
  socklen_t length = sizeof(name);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length);
  const int one = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));  // no Unix socket has it
  HttpLoop& loop = all.LeastTaken();
  PlainStream plain(net::make_strand(loop.io), Protocol(name.ss_family, 0), descriptor);
  if (tls == nullptr) return std::make_shared<Connection<PlainStream>>(all, loop, nullptr, std::move(plain));
  net::ssl::context& context = *tls;
  return std::make_shared<Connection<TlsStream>>(all, loop, std::move(tls), std::move(plain), context);
}

}  // namespace swizzle
