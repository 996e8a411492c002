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

// A stream that ends at once; deletes itself.
class RefusedStream final
    : public grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse> {
 public:
  explicit RefusedStream(const char* method) { Finish(Unserved(method)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
UnservedMethods::ModelStreamInfer(Context*) {
  return new RefusedStream("ModelStreamInfer");
}

UnservedMethods::Unary* UnservedMethods::RepositoryIndex(Context* context, const inference::RepositoryIndexRequest*,
                                                         inference::RepositoryIndexResponse*) {
  return Refuse(context, "RepositoryIndex");
}

UnservedMethods::Unary* UnservedMethods::RepositoryModelLoad(Context* context,
                                                             const inference::RepositoryModelLoadRequest*,
                                                             inference::RepositoryModelLoadResponse*) {
  return Refuse(context, "RepositoryModelLoad");
}

UnservedMethods::Unary* UnservedMethods::RepositoryModelUnload(Context* context,
                                                               const inference::RepositoryModelUnloadRequest*,
                                                               inference::RepositoryModelUnloadResponse*) {
  return Refuse(context, "RepositoryModelUnload");
}

UnservedMethods::Unary* UnservedMethods::SystemSharedMemoryStatus(Context* context,
                                                                  const inference::SystemSharedMemoryStatusRequest*,
                                                                  inference::SystemSharedMemoryStatusResponse*) {
  return Refuse(context, "SystemSharedMemoryStatus");
}

UnservedMethods::Unary* UnservedMethods::SystemSharedMemoryRegister(Context* context,
                                                                    const inference::SystemSharedMemoryRegisterRequest*,
                                                                    inference::SystemSharedMemoryRegisterResponse*) {
  return Refuse(context, "SystemSharedMemoryRegister");
}

UnservedMethods::Unary* UnservedMethods::SystemSharedMemoryUnregister(
    Context* context, const inference::SystemSharedMemoryUnregisterRequest*,
    inference::SystemSharedMemoryUnregisterResponse*) {
  return Refuse(context, "SystemSharedMemoryUnregister");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryStatus(Context* context,
                                                                const inference::CudaSharedMemoryStatusRequest*,
                                                                inference::CudaSharedMemoryStatusResponse*) {
  return Refuse(context, "CudaSharedMemoryStatus");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryRegister(Context* context,
                                                                  const inference::CudaSharedMemoryRegisterRequest*,
                                                                  inference::CudaSharedMemoryRegisterResponse*) {
  return Refuse(context, "CudaSharedMemoryRegister");
}

UnservedMethods::Unary* UnservedMethods::CudaSharedMemoryUnregister(Context* context,
                                                                    const inference::CudaSharedMemoryUnregisterRequest*,
                                                                    inference::CudaSharedMemoryUnregisterResponse*) {
  return Refuse(context, "CudaSharedMemoryUnregister");
}

UnservedMethods::Unary* UnservedMethods::TraceSetting(Context* context, const inference::TraceSettingRequest*,
                                                      inference::TraceSettingResponse*) {
  return Refuse(context, "TraceSetting");
}

UnservedMethods::Unary* UnservedMethods::LogSettings(Context* context, const inference::LogSettingsRequest*,
                                                     inference::LogSettingsResponse*) {
  return Refuse(context, "LogSettings");
}

}  // namespace swizzle
