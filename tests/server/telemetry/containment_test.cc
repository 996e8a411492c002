#include "server/telemetry/containment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace swizzle {
namespace {

using ::testing::HasSubstr;

template <typename Exception>
Status After(Exception exception) {
  return Contain("do it", [&]() -> Status { throw exception; });
}

TEST(ContainTest, ReturnsWhatTheCallReturns) {
  EXPECT_TRUE(Contain("do it", [] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(*Contain("do it", []() -> StatusOr<int> { return 7; }), 7);
  EXPECT_EQ(Contain("do it", [] { return absl::NotFoundError("gone"); }).message(), "gone");
}

TEST(ContainTest, TellsWhatRanOut) {
  EXPECT_EQ(After(std::bad_alloc()), MakeError(StatusCode::kResourceExhausted, "there is not enough memory to do it"));
  const Status threads = After(std::system_error(EAGAIN, std::generic_category()));
  EXPECT_EQ(threads.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(threads.message()), HasSubstr("no thread, memory or file left to do it"));
}

TEST(ContainTest, KeepsTheRestToItself) {
  EXPECT_EQ(After(std::logic_error("map::at in /src/x.cc")), MakeError(StatusCode::kInternal, "could not do it"));
  EXPECT_EQ(After(7), MakeError(StatusCode::kInternal, "could not do it"));
}

}  // namespace
}  // namespace swizzle
