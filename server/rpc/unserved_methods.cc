#include "server/rpc/unserved_methods.h"

#include <string>

namespace swizzle {
namespace {

using grpc::ByteBuffer;

grpc::Status Unserved(const char* method) {
  return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, std::string(method) + " is not supported yet");
}

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const char* method) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(Unserved(method));
  return reactor;
}

// A stream that ends at once; deletes itself.
class RefusedStream final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  explicit RefusedStream(const char* method) { Finish(Unserved(method)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* UnservedMethods::ModelStreamInfer(Context*) {
  return new RefusedStream("ModelStreamInfer");
}

UnservedMethods::Unary* UnservedMethods::RepositoryModelLoad(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "RepositoryModelLoad");
}

UnservedMethods::Unary* UnservedMethods::RepositoryModelUnload(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "RepositoryModelUnload");
}

UnservedMethods::Unary* UnservedMethods::SystemSharedMemoryStatus(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "SystemSharedMemoryStatus");
}

UnservedMethods::Unary* UnservedMethods::SystemSharedMemoryRegister(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "SystemSharedMemoryRegister");
}

UnservedMethods::Unary* UnservedMethods::SystemSharedMemoryUnregister(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "SystemSharedMemoryUnregister");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryStatus(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "CudaSharedMemoryStatus");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryRegister(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "CudaSharedMemoryRegister");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryUnregister(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "CudaSharedMemoryUnregister");
}

UnservedMethods::Unary* UnservedMethods::TraceSetting(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "TraceSetting");
}

UnservedMethods::Unary* UnservedMethods::LogSettings(Context* context, const Bytes*, Bytes*) {
  return Refuse(context, "LogSettings");
}

}  // namespace swizzle
