// Asks Authorization about every call of a service, before its reaction hears of it.
//
// gRPC gives a server's interceptors no way to refuse a call, and its hook for credentials works with TLS alone. So
// what is registered with gRPC is a service of these handlers, one for each method of the service that answers, and
// nothing reaches that but through them: GrpcListener registers no other.
#ifndef SWIZZLE_SERVER_RPC_ADMISSION_H_
#define SWIZZLE_SERVER_RPC_ADMISSION_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/status.h"
#include "server/rpc/health.h"
#include "server/rpc/raw_service.h"
#include "server/security/authorization.h"

namespace swizzle {

// What a call shows: its one header "authorization"; empty for none, or several. It lives as long as the context.
std::string_view ShownBy(const grpc::ServerContextBase& context);

// Whom a listener asks.
struct Admission {
  const Authorization* authorization = &Authorization::Open();  // outlives the listener
  ListenerKind listener = ListenerKind::kPublic;
};

// A service whose methods are raw: their messages are bytes. It outlives whom it is given to.
struct ServedService {
  // `its_name` as its .proto has it, with the package.
  ServedService(grpc::Service* its, std::string its_name) : service(its), name(std::move(its_name)) {}
  // Those that there are, so that they need not be named.  NOLINTNEXTLINE(google-explicit-constructor)
  ServedService(RawInferenceService* its) : ServedService(its, kInferenceService) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  ServedService(HealthService* its) : ServedService(its, grpc::health::v1::Health::service_full_name()) {}

  grpc::Service* service;
  std::string name;
};

// The service to register in its place. INVALID_ARGUMENT if no .proto that is linked has the name.
StatusOr<std::unique_ptr<grpc::Service>> NewAdmittedService(const ServedService& served, const Admission& admission);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_ADMISSION_H_
