#include "kernels/cpu/runtime/start_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/process_limits.h"

namespace swizzle::cpu {
namespace {

using ::testing::HasSubstr;

TEST(CheckThreadsTest, SomeCanBeStarted) {
  EXPECT_TRUE(CheckThreads(0).ok());
  EXPECT_TRUE(CheckThreads(3).ok());
}

TEST(CheckThreadsTest, WhereNoneCanItSaysWhatToRaise) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer ends a process that can't start a thread";
#endif
  const NoMoreThreads none;
  EXPECT_TRUE(CheckThreads(0).ok());
  const Status status = CheckThreads(3);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("may not start 3 threads more; raise its limits ("));
}

// In a process of its own.
TEST(ThreadLimitsTest, AreNamedAsWhoSetsThemKnowsThem) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers take address space of their own";
#endif
  const auto limits = [] {
    const rlimit processes = {12345, 12345}, addresses = {rlim_t{1} << 40, rlim_t{1} << 40};
    setrlimit(RLIMIT_NPROC, &processes);
    setrlimit(RLIMIT_AS, &addresses);
    std::fputs(ThreadLimits().c_str(), stderr);
    std::_Exit(0);
  };
  EXPECT_EXIT(limits(), ::testing::ExitedWithCode(0), "ulimit -u is 12345.*ulimit -v is 1073741824");
}

}  // namespace
}  // namespace swizzle::cpu
