// Regions of shared memory as Triton's clients of HTTP register and list them. Functions only.
#ifndef SWIZZLE_SERVER_REST_REGION_JSON_H_
#define SWIZZLE_SERVER_REST_REGION_JSON_H_

#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {

// {"key": KEY, "byte_size": N, "offset": N}; the last may be missing. INVALID_ARGUMENT, which names what is wrong.
StatusOr<inference::SystemSharedMemoryRegisterRequest> ReadSystemRegion(std::string_view text, std::string_view name);
// {"raw_handle": {"b64": BASE64}, "device_id": N, "byte_size": N}. Likewise.
StatusOr<inference::CudaSharedMemoryRegisterRequest> ReadCudaRegion(std::string_view text, std::string_view name);

// An array of objects, in the order of their names.
std::string WriteRegions(const inference::SystemSharedMemoryStatusResponse& regions);
std::string WriteRegions(const inference::CudaSharedMemoryStatusResponse& regions);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REGION_JSON_H_
