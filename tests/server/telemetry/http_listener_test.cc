#include "server/telemetry/http_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_get.h"

namespace swizzle {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

HttpResponse Echo(const HttpRequest& request) { return {.body = Concat("path ", request.path)}; }

std::unique_ptr<HttpListener> Start(HttpHandler handler, const std::string& address = "127.0.0.1:0") {
  StatusOr<std::unique_ptr<HttpListener>> listener = NewHttpListener(address, std::move(handler));
  SWIZZLE_CHECK(listener.ok());
  return *std::move(listener);
}

TEST(HttpListenerTest, AnswersWithWhatTheHandlerSays) {
  const auto listener = Start(Echo);
  EXPECT_THAT(HttpGet(listener->port(), "/a?b=c"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nContent-Length: 7\r\n"),
                    HasSubstr("\r\nConnection: close\r\n"), EndsWith("\r\n\r\npath /a")));
}

TEST(HttpListenerTest, HeadHasNoBody) {
  const auto listener = Start(Echo);
  EXPECT_THAT(HttpGet(listener->port(), "/a", "HEAD"),
              AllOf(HasSubstr("\r\nContent-Length: 7\r\n"), EndsWith("\r\n\r\n")));
}

TEST(HttpListenerTest, AHandlerThatThrowsEndsItsConnection) {
  const auto listener = Start([](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/thrown") throw std::bad_alloc();
    return Echo(request);
  });
  EXPECT_EQ(HttpGet(listener->port(), "/thrown"), "");
  EXPECT_THAT(HttpGet(listener->port(), "/a"), EndsWith("path /a"));
}

TEST(HttpListenerTest, LargeAnswersArriveWhole) {
  const std::string body(3'000'000, 'x');
  const auto listener = Start([&](const HttpRequest&) { return HttpResponse{.body = body}; });
  EXPECT_THAT(HttpGet(listener->port(), "/").size(), ::testing::Gt(body.size()));
}

TEST(HttpListenerTest, OtherMethodsAreRefusedAndServiceGoesOn) {
  const auto listener = Start(Echo);
  EXPECT_THAT(HttpGet(listener->port(), "/a", "DELETE"), StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(HttpGet(listener->port(), "/" + std::string(10000, 'a')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(HttpGet(listener->port(), "/a"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpListenerTest, ServesManyAtOnce) {
  const auto listener = Start(Echo);
  std::vector<std::string> answers(32);
  std::vector<std::thread> clients;
  for (std::string& answer : answers) {
    clients.emplace_back([&answer, port = listener->port()] { answer = HttpGet(port, "/many"); });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(answers, ::testing::Each(EndsWith("path /many")));
}

// More than are looked after at once: the oldest make room.
TEST(HttpListenerTest, SilentConnectionsKeepNobodyWaiting) {
  const auto listener = Start(Echo);
  std::deque<SilentClient> silent;
  for (int i = 0; i < 400; ++i) {
    silent.emplace_back(listener->port());
    if (i % 100 < 99) continue;
    EXPECT_THAT(HttpGet(listener->port(), "/a"), EndsWith("path /a"));
  }
}

TEST(HttpListenerTest, ASlowAnswerKeepsNoOtherWaiting) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  const auto listener = Start([&](const HttpRequest& request) {
    if (request.path == "/slow") gone.wait();
    return Echo(request);
  });
  std::thread slow([&] { HttpGet(listener->port(), "/slow"); });
  EXPECT_THAT(HttpGet(listener->port(), "/a"), EndsWith("path /a"));
  go.set_value();
  slow.join();
}

TEST(HttpListenerTest, StopsWithAClientThatSaysNothing) {
  auto listener = Start(Echo);
  const int port = listener->port();
  const SilentClient silent(port);
  EXPECT_THAT(HttpGet(port, "/a"), StartsWith("HTTP/1.1 200 "));
  listener.reset();
  EXPECT_EQ(HttpGet(port, "/a"), "");
}

TEST(HttpListenerTest, TakesHostNames) {
  const auto listener = Start(Echo, "localhost:0");
  EXPECT_GT(listener->port(), 0);
}

TEST(HttpListenerTest, SaysWhyItCannotListen) {
  const auto listener = Start(Echo);
  const std::string taken = Concat("127.0.0.1:", listener->port());
  EXPECT_EQ(NewHttpListener(taken, Echo).status(),
            absl::UnavailableError(Concat("cannot listen on ", taken, ": Address already in use")));
  const Status foreign = NewHttpListener("192.0.2.1:0", Echo).status();  // TEST-NET-1: nobody's
  EXPECT_EQ(foreign.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("192.0.2.1:0"));
}

TEST(HttpListenerTest, RefusesWhatIsNoAddress) {
  for (const char* address : {"", "8002", "localhost", "localhost:", ":8002", "localhost:http", "localhost:99999",
                              "0.0.0.0:8002s", "0.0.0.0:1,0.0.0.0:2", "0.0.0.0:-1", "::1:8002", "[::1:8002", "[]:1"}) {
    const Status status = NewHttpListener(address, Echo).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(status.message()), StartsWith(Concat("'", address, "' is not an address")));
  }
}

TEST(ParseHttpRequestTest, FindsThePath) {
  const HttpRequest get = ParseHttpRequest("GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(get.status, 200);
  EXPECT_EQ(get.path, "/metrics");
  EXPECT_TRUE(get.with_body);
  const HttpRequest head = ParseHttpRequest("HEAD / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(head.path, "/");
  EXPECT_FALSE(head.with_body);
}

TEST(ParseHttpRequestTest, FindsWhatIsShown) {
  const auto shown = [](const std::string& headers) {
    return std::string(ParseHttpRequest("GET /a HTTP/1.1\r\n" + headers + "\r\n\r\n").authorization);
  };
  EXPECT_EQ(shown("Host: h\r\nAuthorization: Bearer abc\r\nAccept: x"), "Bearer abc");
  EXPECT_EQ(shown("AUTHORIZATION:\t Bearer abc \t"), "Bearer abc");
  EXPECT_EQ(shown("authorization:"), "");
  EXPECT_EQ(shown("Host: h"), "");
  EXPECT_EQ(shown("Proxy-Authorization: Bearer abc"), "");
  EXPECT_EQ(shown("Authorization : Bearer abc"), "") << "no header of HTTP";
  EXPECT_EQ(shown("Authorization: Bearer abc\r\nAuthorization: Bearer abc"), "") << "nobody knows which";
  EXPECT_EQ(shown("Authorization:\r\nAuthorization: Bearer abc"), "");
  EXPECT_EQ(ParseHttpRequest("GET /a HTTP/1.1 Authorization: x\r\n\r\n").authorization, "");
}

TEST(HttpListenerTest, WhoHasNoTokenIsToldOfThem) {
  const auto listener = Start([](const HttpRequest&) { return HttpResponse{.status = 401, .body = "no\n"}; });
  EXPECT_THAT(HttpGet(listener->port(), "/a"),
              AllOf(StartsWith("HTTP/1.1 401 Unauthorized\r\n"), HasSubstr("\r\nWWW-Authenticate: Bearer\r\n")));
}

TEST(ParseHttpRequestTest, RefusesTheRest) {
  EXPECT_EQ(ParseHttpRequest("POST /metrics HTTP/1.1\r\n\r\n").status, 405);
  for (const char* head : {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
                           "GET  HTTP/1.1\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n",
                           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    EXPECT_EQ(ParseHttpRequest(head).status, 400) << head;
  }
  EXPECT_EQ(ParseHttpRequest(std::string(9000, 'a')).status, 431);
}

}  // namespace
}  // namespace swizzle
