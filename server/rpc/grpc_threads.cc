#include "server/rpc/grpc_threads.h"

#include <dlfcn.h>
#include <grpcpp/grpcpp.h>

namespace swizzle {

bool RunGrpcWorkInPlace() {
  static const bool in_place = [] {
    if (!grpc::Version().starts_with("1.51.")) return false;
    void* const found = dlsym(RTLD_DEFAULT, "_ZN9grpc_core8Executor19SetThreadingDefaultEb");
    if (found == nullptr) return false;
    grpc_init();  // and never given back: a library that starts again starts these threads, too
    reinterpret_cast<void (*)(bool)>(found)(false);
    return true;
  }();
  return in_place;
}

}  // namespace swizzle
