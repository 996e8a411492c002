#include "server/rpc/grpc_threads.h"

#include <grpc/grpc.h>

#include "server/libraries/versions.h"

namespace swizzle {

bool RunGrpcWorkInPlace() {
  static const bool in_place = [] {
    void* const found = UnshownGrpcFunction({"1.51."}, "_ZN9grpc_core8Executor19SetThreadingDefaultEb");
    if (found == nullptr) return false;
    grpc_init();  // and never given back: a library that starts again starts these threads, too
    reinterpret_cast<void (*)(bool)>(found)(false);
    return true;
  }();
  return in_place;
}

}  // namespace swizzle
