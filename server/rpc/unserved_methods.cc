#include "server/rpc/unserved_methods.h"

#include <string>

namespace swizzle {
namespace {

grpc::Status Unserved(const char* method) {
  return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, std::string(method) + " is not supported yet");
}

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const char* method) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(Unserved(method));
  return reactor;
}

}  // namespace

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryStatus(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "CudaSharedMemoryStatus");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryRegister(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "CudaSharedMemoryRegister");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryUnregister(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "CudaSharedMemoryUnregister");
}

}  // namespace swizzle
