#include "server/net/listening_socket.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>
#include <future>

#include "server/net/connection_acceptor.h"
#include "server/net/unix_peers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;

class UnixSocketTest : public ::testing::Test {
 protected:
  FileDescriptor Connect() const {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    path_.copy(name.sun_path, path_.size());
    FileDescriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(client.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0 ? std::move(client)
                                                                                        : FileDescriptor();
  }
  std::string Refusal() const { return std::string(Listen("unix:" + path_).status().message()); }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() / "socket";
};

TEST_F(UnixSocketTest, TheFileIsTheOwnersAndGoesWithTheSocket) {
  const mode_t before = umask(0);
  {
    const auto socket = Listen("unix://" + path_);
    umask(before);
    ASSERT_TRUE(socket.ok()) << socket.status();
    struct stat found = {};
    ASSERT_EQ(lstat(path_.c_str(), &found), 0);
    EXPECT_TRUE(S_ISSOCK(found.st_mode));
    EXPECT_EQ(found.st_mode & 0777, 0660u);
    EXPECT_TRUE(Connect().is_open());
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, OneThatNobodyListensOnIsReplaced) {
  {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    path_.copy(name.sun_path, path_.size());
    const FileDescriptor left(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(left.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  }
  const auto socket = Listen("unix:" + path_);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(Connect().is_open());
  EXPECT_THAT(Refusal(), HasSubstr("another process listens on it"));
  EXPECT_TRUE(Connect().is_open()) << "who was first goes on";
}

TEST_F(UnixSocketTest, AnotherFileStays) {
  std::ofstream(path_) << "precious";
  EXPECT_THAT(Refusal(), HasSubstr("there is a file of another kind"));
  std::string word;
  std::ifstream(path_) >> word;
  EXPECT_EQ(word, "precious");
}

TEST_F(UnixSocketTest, AFileThatSomebodyPutInItsPlaceStays) {
  {
    const auto socket = Listen("unix:" + path_);
    ASSERT_TRUE(socket.ok());
    std::filesystem::rename(path_, path_ + ".moved");
    std::ofstream(path_) << "another's";
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, LongPathsAreRefused) {
  const Status status = Listen("unix:/" + std::string(200, 'x')).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a socket's path has at most 107 bytes"));
}

TEST_F(UnixSocketTest, ClientsHaveNamesByWhichTheyAreEnded) {
  std::promise<int> one, two;
  std::vector<std::promise<int>*> next = {&two, &one};
  ConnectionAcceptor acceptor(*Listen("unix:" + path_), 10, [&](int descriptor) {
    next.back()->set_value(descriptor);
    next.pop_back();
  });
  const FileDescriptor first = Connect();
  const FileDescriptor accepted_first(one.get_future().get());
  const FileDescriptor second = Connect();
  const FileDescriptor accepted_second(two.get_future().get());
  const std::string name = UnixPeerOf(accepted_first.get()), other = UnixPeerOf(accepted_second.get());
  EXPECT_THAT(name, ::testing::StartsWith("unix-abstract:swizzle-client-"));
  EXPECT_NE(name, other);
  EXPECT_EQ(UnixPeerOf(accepted_first.get()), name);
  EXPECT_TRUE(acceptor.Accepted(name).has_value());
  EXPECT_TRUE(acceptor.End(name));
  char byte;
  EXPECT_EQ(recv(first.get(), &byte, 1, 0), 0) << "it was ended";
  EXPECT_EQ(recv(second.get(), &byte, 1, MSG_DONTWAIT), -1) << "the other is open";
}

}  // namespace
}  // namespace swizzle
