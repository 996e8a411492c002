// Protobuf logs every name that is no UTF-8, which takes a fuzz target longer than all else: in programs that include
// this, in one file, it is silent.
#ifndef SWIZZLE_TESTS_FUZZ_QUIET_PROTOBUF_H_
#define SWIZZLE_TESTS_FUZZ_QUIET_PROTOBUF_H_

#include <google/protobuf/stubs/common.h>

#if GOOGLE_PROTOBUF_VERSION >= 4022000  // it has Abseil's log since
#include "absl/log/globals.h"
#else
#include <google/protobuf/stubs/logging.h>
#endif

extern "C" int LLVMFuzzerInitialize(int*, char***) {
#if GOOGLE_PROTOBUF_VERSION >= 4022000
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kInfinity);
#else
  google::protobuf::SetLogHandler(nullptr);
#endif
  return 0;
}

#endif  // SWIZZLE_TESTS_FUZZ_QUIET_PROTOBUF_H_
