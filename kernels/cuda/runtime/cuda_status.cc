#include "kernels/cuda/runtime/cuda_status.h"

namespace swizzle::cuda {

Status CudaStatus(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  const StatusCode code = error == cudaErrorMemoryAllocation ? StatusCode::kResourceExhausted : StatusCode::kInternal;
  return MakeError(code, "CUDA could not ", what, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

Status CudaStatus(cublasStatus_t error, std::string_view what) {
  if (error == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const StatusCode code = error == CUBLAS_STATUS_ALLOC_FAILED ? StatusCode::kResourceExhausted : StatusCode::kInternal;
  return MakeError(code, "cuBLAS could not ", what, ": ", cublasLtGetStatusString(error));
}

bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace swizzle::cuda
