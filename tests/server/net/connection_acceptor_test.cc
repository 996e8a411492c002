#include "server/net/connection_acceptor.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace swizzle {
namespace {

template <typename Condition>
void Await(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  void Start(int most) {
    auto socket = Listen("127.0.0.1:0");
    ASSERT_TRUE(socket.ok()) << socket.status();
    port_ = socket->port;
    acceptor_ = std::make_unique<ConnectionAcceptor>(*std::move(socket), most, [this](int descriptor) {
      const std::lock_guard lock(mutex_);
      taken_.emplace_back(descriptor);
    });
  }
  ~ConnectionAcceptorTest() override { acceptor_ = nullptr; }

  FileDescriptor Connect() const {
    FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return client;
  }

  // What the server knows it as.
  static std::string PeerNameOf(const FileDescriptor& client) {
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(client.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return Concat("ipv4:127.0.0.1:", ntohs(address.sin_port));
  }

  // Waits until the other side has closed it.
  static bool EndsSoon(const FileDescriptor& client) {
    pollfd wanted = {client.get(), POLLIN, 0};
    char byte;
    return poll(&wanted, 1, 60000) == 1 && recv(client.get(), &byte, 1, 0) <= 0;
  }

  static void AwaitBytes(const FileDescriptor& connection) {
    pollfd wanted = {connection.get(), POLLIN, 0};
    ASSERT_EQ(poll(&wanted, 1, 60000), 1);
  }

  size_t taken() {
    const std::lock_guard lock(mutex_);
    return taken_.size();
  }
  void CloseTaken() {
    const std::lock_guard lock(mutex_);
    taken_.clear();
  }

  int port_ = 0;
  std::mutex mutex_;
  std::vector<FileDescriptor> taken_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, HandsOverConnections) {
  Start(10);
  const FileDescriptor first = Connect(), second = Connect();
  Await([&] { return taken() == 2; });
  EXPECT_EQ(acceptor_->counts().accepted, 2);
  EXPECT_EQ(acceptor_->counts().open, 2);
  EXPECT_TRUE(acceptor_->accepting());
}

TEST_F(ConnectionAcceptorTest, RefusesOneTooManyUntilAnotherIsClosed) {
  Start(2);
  const FileDescriptor first = Connect(), second = Connect(), third = Connect();
  EXPECT_TRUE(EndsSoon(third));
  EXPECT_EQ(acceptor_->counts().refused_limit, 1);
  EXPECT_EQ(taken(), 2u);
  CloseTaken();
  const FileDescriptor fourth = Connect();
  Await([&] { return taken() == 1; });
  EXPECT_EQ(acceptor_->counts().refused_limit, 1);
}

// gRPC's own listener would accept nothing ever after.
TEST_F(ConnectionAcceptorTest, SurvivesTheEndOfFileDescriptors) {
  Start(100000);
  const FileDescriptor before = Connect();
  Await([&] { return taken() == 1; });
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit none = {static_cast<rlim_t>(clients.back().get()) + 1, limit.rlim_max};
  std::deque<FileDescriptor> holes;  // below the limit
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  while (true) {
    FileDescriptor hole(dup(clients.back().get()));
    if (!hole.is_open()) break;
    holes.push_back(std::move(hole));
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const FileDescriptor& client : clients) {
    EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_TRUE(EndsSoon(client));
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  holes.clear();
  EXPECT_EQ(acceptor_->counts().refused_files, 3);
  const FileDescriptor after = Connect();
  Await([&] { return taken() == 2; });
  EXPECT_TRUE(acceptor_->accepting());
}

// Whoever sends faster than is read would else be served for as long as its bytes last.
TEST_F(ConnectionAcceptorTest, WhatAnEndedConnectionHasSentIsNotRead) {
  Start(10);
  const FileDescriptor client = Connect(), other = Connect();
  Await([&] { return taken() == 2; });
  const std::string sent(100000, 'x');
  ASSERT_EQ(send(client.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  AwaitBytes(taken_.front());
  EXPECT_GT(acceptor_->TrafficOf(PeerNameOf(client)).received, 0);
  EXPECT_EQ(acceptor_->TrafficOf(PeerNameOf(other)).received, 0);
  char byte;
  EXPECT_TRUE(acceptor_->End(PeerNameOf(client)));
  EXPECT_LE(recv(taken_.front().get(), &byte, 1, 0), 0);
  EXPECT_TRUE(EndsSoon(client));
  EXPECT_FALSE(acceptor_->End(PeerNameOf(client))) << "it is ended once";
  EXPECT_FALSE(acceptor_->End("ipv4:127.0.0.1:1"));
  EXPECT_EQ(acceptor_->counts().ended, 1);
  ASSERT_EQ(send(other.get(), sent.data(), 1, 0), 1);
  AwaitBytes(taken_.back());
  EXPECT_EQ(recv(taken_.back().get(), &byte, 1, 0), 1) << "the other one goes on";
}

TEST_F(ConnectionAcceptorTest, EndsAllAfterWhatWasWritten) {
  Start(10);
  const FileDescriptor first = Connect(), second = Connect();
  Await([&] { return taken() == 2; });
  acceptor_->Stop();
  EXPECT_EQ(acceptor_->CountOpen(), 2);
  for (const FileDescriptor& connection : taken_) ASSERT_EQ(send(connection.get(), "x", 1, 0), 1);
  acceptor_->EndAll();
  for (const FileDescriptor* client : {&first, &second}) {
    char byte = 0;
    EXPECT_EQ(recv(client->get(), &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_TRUE(EndsSoon(*client));
  }
  CloseTaken();
  EXPECT_EQ(acceptor_->CountOpen(), 0);
}

TEST_F(ConnectionAcceptorTest, WaitsForAConnectionUntilItStops) {
  Start(10);
  FileDescriptor client;
  std::thread connects([&] { client = Connect(); });
  EXPECT_TRUE(acceptor_->AwaitConnection());
  connects.join();
  EXPECT_TRUE(acceptor_->AwaitConnection()) << "it is still there";
  acceptor_ = nullptr;

  Start(10);
  std::thread stops([&] { acceptor_->Stop(); });
  EXPECT_FALSE(acceptor_->AwaitConnection());
  stops.join();
}

TEST_F(ConnectionAcceptorTest, ShowsWhetherAnythingComes) {
  Start(10);
  const FileDescriptor first = Connect();
  Await([&] { return taken() == 1; });
  const ConnectionAcceptor::Activity quiet = acceptor_->activity();
  EXPECT_EQ(quiet.open, 1);
  EXPECT_TRUE(quiet.is_counted);
  EXPECT_EQ(acceptor_->activity(), quiet);
  ASSERT_EQ(send(first.get(), "x", 1, 0), 1);
  AwaitBytes(taken_.front());
  EXPECT_EQ(acceptor_->activity().received, quiet.received + 1);
  const FileDescriptor second = Connect();
  Await([&] { return taken() == 2; });
  EXPECT_NE(acceptor_->activity(), quiet);
}

TEST_F(ConnectionAcceptorTest, ClosesItsPortWhenItStops) {
  Start(10);
  acceptor_->Stop();
  acceptor_->Stop();
  EXPECT_TRUE(Listen(Concat("127.0.0.1:", port_)).ok()) << "the port is free again";
}

TEST(RaiseFileLimit, IsTheHardLimit) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int64_t files = RaiseFileLimit();
  EXPECT_GE(files, static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 20)));
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
}

}  // namespace
}  // namespace swizzle
