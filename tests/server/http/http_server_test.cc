#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "tests/support/http_get.h"

namespace swizzle {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Answers with the target, or by what a test puts in its place.
class Echo final : public HttpService {
 public:
  HttpAdmission Admit(const HttpHead& head) override {
    if (head.method == "GET" || head.method == "HEAD") return {};
    if (head.method == "POST") return {.most_body_bytes = 10};
    return {.refusal = HttpAnswer{.status = 405, .body = {"no"}}};
  }
  void Take(std::shared_ptr<HttpCall> call) override {
    if (const auto instead = Instead()) return instead(call);
    call->Answer(HttpAnswer{.content_type = "text/plain",
                            .body = {"target ", call->head().target, std::string(call->TakeBody()->text())}},
                 nullptr);
  }
  HttpAnswer Error(int status, const std::string& why) override { return {.status = status, .body = {why}}; }

  using Answer = std::function<void(const std::shared_ptr<HttpCall>&)>;
  // From now on; null: as at first.
  void Do(Answer instead) {
    const MutexLock lock(mutex_);
    instead_ = std::move(instead);
  }

 private:
  Answer Instead() const {
    const MutexLock lock(mutex_);
    return instead_;
  }

  mutable Mutex mutex_;
  Answer instead_ ABSL_GUARDED_BY(mutex_);
};

// As metrics and probes are served.
constexpr HttpLimits kOneRequest = {.connections = 64,
                                    .head_bytes = 8192,
                                    .handshake_time = absl::Seconds(10),
                                    .threads = 2,
                                    .one_request = true,
                                    .make_room_from = 48};

std::unique_ptr<HttpServer> Start(Echo& echo, const HttpLimits& limits = kOneRequest,
                                  const std::string& address = "127.0.0.1:0") {
  StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(address, limits, echo, nullptr);
  SWIZZLE_CHECK(server.ok());
  return *std::move(server);
}

std::string Get(const std::string& path, bool close = false) {
  return Concat("GET ", path, " HTTP/1.1\r\nHost: h\r\n", close ? "Connection: close\r\n" : "", "\r\n");
}

TEST(HttpServerTest, AnswersWithWhatTheServiceSays) {
  Echo echo;
  const auto server = Start(echo);
  EXPECT_THAT(HttpGet(server->port(), "/a?b=c"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n"),
                    HasSubstr("\r\nConnection: close\r\n"), EndsWith("\r\n\r\ntarget /a?b=c")));
  EXPECT_EQ(server->counts().requests, 1);
}

TEST(HttpServerTest, HeadHasNoBody) {
  Echo echo;
  const auto server = Start(echo);
  EXPECT_THAT(HttpGet(server->port(), "/a", "HEAD"),
              AllOf(HasSubstr("\r\nContent-Length: 9\r\n"), EndsWith("\r\n\r\n")));
}

TEST(HttpServerTest, AServiceThatThrowsEndsTheConnection) {
  Echo echo;
  const auto server = Start(echo);
  echo.Do([](const auto&) { throw std::bad_alloc(); });
  EXPECT_EQ(HttpGet(server->port(), "/thrown"), "");
  echo.Do(nullptr);
  EXPECT_THAT(HttpGet(server->port(), "/a"), EndsWith("target /a"));
}

// It would be kept for the client's next request, or its end.
TEST(HttpServerTest, ACallbackThatThrowsEndsTheConnection) {
  Echo echo;
  const auto server = Start(echo, {.connections = 8});
  echo.Do([](const auto& call) { call->Answer(HttpAnswer{.body = {"answered"}}, [] { throw std::bad_alloc(); }); });
  EXPECT_THAT(SilentClient(server->port()).Ask(Get("/a")), EndsWith("answered"));
  std::promise<void> taken;
  std::shared_ptr<HttpCall> held;
  echo.Do([&](const std::shared_ptr<HttpCall>& call) {
    call->OnLeft([&] {
      held = nullptr;
      throw std::bad_alloc();
    });
    held = call;
    taken.set_value();
  });
  std::thread client([port = server->port()] { EXPECT_EQ(SilentClient(port).Ask(Get("/b")), ""); });
  taken.get_future().wait();
  server->Shutdown();
  client.join();
}

TEST(HttpServerTest, ACallThatIsDroppedEndsItsConnection) {
  Echo echo;
  const auto server = Start(echo);
  echo.Do([](const auto&) {});
  EXPECT_EQ(HttpGet(server->port(), "/dropped"), "");
}

TEST(HttpServerTest, LargeAnswersArriveWhole) {
  Echo echo;
  const auto server = Start(echo);
  const std::string body(3'000'000, 'x');
  echo.Do([&](const auto& call) { call->Answer(HttpAnswer{.body = {body, body}}, nullptr); });
  EXPECT_GT(HttpGet(server->port(), "/").size(), 2 * body.size());
}

TEST(HttpServerTest, WhatIsNoRequestIsRefusedAndServiceGoesOn) {
  Echo echo;
  const auto server = Start(echo);
  EXPECT_THAT(HttpGet(server->port(), "/a", "DELETE"), StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(HttpGet(server->port(), "/" + std::string(10000, 'a')), StartsWith("HTTP/1.1 431 "));
  for (const char* head :
       {"\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
    EXPECT_THAT(SilentClient(server->port()).Ask(head), StartsWith("HTTP/1.1 400 ")) << head;
  }
  EXPECT_THAT(HttpGet(server->port(), "/a"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServerTest, BodiesAreBoundedByWhatTheServiceAllows) {
  Echo echo;
  const auto server = Start(echo);
  const auto post = [&](const std::string& fields) {
    return SilentClient(server->port()).Ask("POST /a HTTP/1.1\r\n" + fields);
  };
  EXPECT_THAT(post("Content-Length: 10\r\n\r\n0123456789"), EndsWith("target /a0123456789"));
  EXPECT_THAT(post("Content-Length: 11\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(post("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), EndsWith("target /aabc"));
  EXPECT_THAT(post("Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(SilentClient(server->port()).Ask("GET /a HTTP/1.1\r\nContent-Length: 1\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
}

TEST(HttpServerTest, ServesManyAtOnce) {
  Echo echo;
  const auto server = Start(echo);
  std::vector<std::string> answers(32);
  std::vector<std::thread> clients;
  for (std::string& answer : answers) {
    clients.emplace_back([&answer, port = server->port()] { answer = HttpGet(port, "/many"); });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(answers, Each(EndsWith("target /many")));
}

// ---- Connections ----

// More than there may be: the oldest make room.
TEST(HttpServerTest, SilentConnectionsKeepNobodyWaiting) {
  Echo echo;
  const auto server = Start(echo);
  std::deque<SilentClient> silent;
  for (int i = 0; i < 400; ++i) {
    silent.emplace_back(server->port());
    if (i % 100 < 99) continue;
    EXPECT_THAT(HttpGet(server->port(), "/a"), EndsWith("target /a"));
  }
  EXPECT_EQ(server->connections().refused_limit, 0);
}

TEST(HttpServerTest, ConnectionsThatAreAnsweredMakeNoRoom) {
  Echo echo;
  HttpLimits limits = kOneRequest;
  limits.connections = 8;
  limits.make_room_from = 2;
  const auto server = Start(echo, limits);
  std::promise<void> taken;
  std::shared_ptr<HttpCall> held;
  echo.Do([&](const std::shared_ptr<HttpCall>& call) {
    held = call;
    taken.set_value();
  });
  std::string answer;
  std::thread first([&, port = server->port()] { answer = HttpGet(port, "/first"); });
  taken.get_future().wait();
  echo.Do(nullptr);
  std::deque<SilentClient> silent;
  for (int i = 0; i < 20; ++i) silent.emplace_back(server->port());
  EXPECT_THAT(HttpGet(server->port(), "/a"), EndsWith("target /a"));
  held->Answer(HttpAnswer{.body = {"held"}}, nullptr);
  held = nullptr;
  first.join();
  EXPECT_THAT(answer, EndsWith("held"));
}

// The one thread that reads requests is late: the oldest connection has asked meanwhile, and others have to make room.
TEST(HttpServerTest, WhoHasAskedMakesNoRoom) {
  Echo echo;
  HttpLimits limits = kOneRequest;
  limits.threads = 1;
  const auto server = Start(echo, limits);
  std::promise<void> go, begun;
  echo.Do([&](const std::shared_ptr<HttpCall>& call) {
    begun.set_value();
    go.get_future().wait();
    call->Answer(HttpAnswer{.body = {"late"}}, nullptr);
  });
  const SilentClient busy(server->port());
  ASSERT_TRUE(busy.Send(Get("/busy")));
  begun.get_future().wait();
  echo.Do(nullptr);
  const SilentClient asking(server->port());
  ASSERT_TRUE(asking.Send(Get("/asked")));
  std::deque<SilentClient> silent;
  for (int i = 0; i < 56; ++i) silent.emplace_back(server->port());
  while (server->connections().accepted < 58) std::this_thread::yield();
  go.set_value();
  EXPECT_THAT(busy.Read(), EndsWith("late"));
  EXPECT_THAT(asking.Read(), EndsWith("target /asked"));
  EXPECT_THAT(HttpGet(server->port(), "/a"), EndsWith("target /a"));
}

TEST(HttpServerTest, WithoutRoomTheNewestIsRefused) {
  Echo echo;
  const auto server = Start(echo, {.connections = 3, .handshake_time = absl::Hours(1)});
  std::deque<SilentClient> silent;
  for (int i = 0; i < 3; ++i) silent.emplace_back(server->port());
  EXPECT_EQ(HttpGet(server->port(), "/a"), "");
  EXPECT_EQ(server->connections().refused_limit, 1);
}

TEST(HttpServerTest, ASlowAnswerKeepsNoOtherWaiting) {
  Echo echo;
  const auto server = Start(echo);
  std::promise<void> go, begun;
  std::shared_future<void> gone = go.get_future().share();
  echo.Do([&](const std::shared_ptr<HttpCall>& call) {
    if (call->head().target == "/slow") {
      begun.set_value();
      gone.wait();
    }
    call->Answer(HttpAnswer{.body = {"answered"}}, nullptr);
  });
  std::thread slow([&, port = server->port()] { HttpGet(port, "/slow"); });
  begun.get_future().wait();
  for (int i = 0; i < 10; ++i) EXPECT_THAT(HttpGet(server->port(), "/a"), EndsWith("answered"));
  go.set_value();
  slow.join();
}

TEST(HttpServerTest, ConnectionsStayOnThreadsOfWhichEachHasAPart) {
  Echo echo;
  const auto server = Start(echo, {.connections = 8, .threads = 2, .stay_on_threads = true});
  Mutex mutex;
  std::map<std::string, std::vector<std::thread::id>> threads;  // by connection
  echo.Do([&](const std::shared_ptr<HttpCall>& call) {
    {
      const MutexLock lock(mutex);
      threads[call->peer()].push_back(std::this_thread::get_id());
    }
    call->Answer(HttpAnswer{.body = {"answered"}}, nullptr);
  });
  const SilentClient first(server->port()), second(server->port());
  while (server->connections().accepted < 2) std::this_thread::yield();
  for (const SilentClient* client : {&first, &second}) {
    ASSERT_TRUE(client->Send(Get("/a") + Get("/b") + Get("/c", true)));
  }
  EXPECT_THAT(first.Read(), EndsWith("answered"));
  EXPECT_THAT(second.Read(), EndsWith("answered"));
  const MutexLock lock(mutex);
  ASSERT_EQ(threads.size(), 2U);
  const auto& [one, other] = std::pair(threads.begin()->second, threads.rbegin()->second);
  EXPECT_THAT(one, AllOf(SizeIs(3), Each(one.front())));
  EXPECT_THAT(other, AllOf(SizeIs(3), Each(other.front())));
  EXPECT_NE(one.front(), other.front());
}

TEST(HttpServerTest, StopsWithAClientThatSaysNothing) {
  Echo echo;
  auto server = Start(echo);
  const int port = server->port();
  const SilentClient silent(port);
  EXPECT_THAT(HttpGet(port, "/a"), StartsWith("HTTP/1.1 200 "));
  server.reset();
  EXPECT_EQ(HttpGet(port, "/a"), "");
}

TEST(HttpServerTest, SlowHeadsAreCutOffAndCounted) {
  Echo echo;
  HttpLimits limits = kOneRequest;
  limits.handshake_time = absl::Milliseconds(20);
  const auto server = Start(echo, limits);
  // One whose first bytes come late is no slow one: it says nothing.
  for (int i = 0; i < 100 && server->counts().ended_slow == 0; ++i) {
    EXPECT_EQ(SilentClient(server->port()).Ask("GET / HT"), "");
  }
  EXPECT_GT(server->counts().ended_slow, 0);
}

TEST(HttpServerTest, KeepsConnectionsWhoseClientsMayAskAgain) {
  Echo echo;
  const auto server = Start(echo, {.connections = 8});
  const std::string answers = SilentClient(server->port()).Ask(Get("/a") + Get("/b") + Get("/c", true));
  EXPECT_THAT(answers, AllOf(HasSubstr("target /a"), HasSubstr("target /b"), EndsWith("target /c")));
  EXPECT_EQ(server->counts().ended_aged, 0);
}

// Of what has come at once everything is answered; then the connection is of age.
TEST(HttpServerTest, AConnectionThatIsOfAgeEndsWithAnAnswer) {
  Echo echo;
  const auto server = Start(echo, {.connections = 8, .connection_age = absl::Nanoseconds(1)});
  const std::string answers = SilentClient(server->port()).Ask(Get("/a") + Get("/b"));
  EXPECT_THAT(answers, AllOf(HasSubstr("target /a"), EndsWith("target /b"), HasSubstr("\r\nConnection: close\r\n")));
  EXPECT_THAT(answers.substr(0, answers.find("target /a")), Not(HasSubstr("Connection: close")));
  EXPECT_EQ(server->counts().ended_aged, 1);
}

TEST(HttpServerTest, ConnectionsThatAreNotOfAgeGoOn) {
  Echo echo;
  const auto server = Start(echo, {.connections = 8, .connection_age = absl::Hours(1)});
  EXPECT_THAT(SilentClient(server->port()).Ask(Get("/a") + Get("/b", true)), HasSubstr("target /b"));
  EXPECT_EQ(server->counts().ended_aged, 0);
}

TEST(HttpServerTest, IdleConnectionsEndAndAreCounted) {
  Echo echo;
  const auto server = Start(echo, {.connections = 8, .idle_time = absl::Milliseconds(20)});
  EXPECT_THAT(SilentClient(server->port()).Ask(Get("/a")), EndsWith("target /a"));
  server->Shutdown();  // clients see the end before it is counted
  EXPECT_EQ(server->counts().ended_idle, 1);
}

TEST(HttpServerTest, ADrainEndsWhatIsIdle) {
  Echo echo;
  const auto server = Start(echo, {.connections = 8});
  std::promise<std::string> answer;
  std::promise<void> taken;
  echo.Do([&](const std::shared_ptr<HttpCall>& call) {
    call->Answer(HttpAnswer{.body = {"answered"}}, [&] { taken.set_value(); });
  });
  std::thread client([&, port = server->port()] { answer.set_value(SilentClient(port).Ask(Get("/a"))); });
  taken.get_future().wait();
  server->Drain();
  client.join();
  EXPECT_THAT(answer.get_future().get(), EndsWith("answered"));
  echo.Do(nullptr);
  EXPECT_THAT(HttpGet(server->port(), "/b"), HasSubstr("\r\nConnection: close\r\n"));
}

// ---- Addresses ----

TEST(HttpServerTest, TakesHostNames) {
  Echo echo;
  EXPECT_GT(Start(echo, kOneRequest, "localhost:0")->port(), 0);
}

TEST(HttpServerTest, SaysWhyItCannotListen) {
  Echo echo;
  const auto server = Start(echo);
  const std::string taken = Concat("127.0.0.1:", server->port());
  EXPECT_EQ(HttpServer::Start(taken, kOneRequest, echo, nullptr).status(),
            absl::UnavailableError(Concat("cannot listen on ", taken, ": Address already in use")));
  const Status foreign = HttpServer::Start("192.0.2.1:0", kOneRequest, echo, nullptr).status();  // nobody's: TEST-NET-1
  EXPECT_EQ(foreign.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("192.0.2.1:0"));
}

TEST(HttpServerTest, RefusesWhatIsNoAddress) {
  Echo echo;
  for (const char* address : {"", "8002", "localhost", "localhost:", ":8002", "localhost:http", "localhost:99999",
                              "0.0.0.0:8002s", "0.0.0.0:1,0.0.0.0:2", "0.0.0.0:-1", "::1:8002", "[::1:8002", "[]:1"}) {
    const Status status = HttpServer::Start(address, kOneRequest, echo, nullptr).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(status.message()), StartsWith(Concat("'", address, "' is not an address")));
  }
}

}  // namespace
}  // namespace swizzle
