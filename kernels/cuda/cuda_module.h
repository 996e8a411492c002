// The CUDA backend is a module of its own, libswizzle_cuda.so, opened when first a GPU is asked for: programs start,
// and are as small, on machines that have none of CUDA's libraries. These are its functions and its version.
#ifndef SWIZZLE_KERNELS_CUDA_CUDA_MODULE_H_
#define SWIZZLE_KERNELS_CUDA_CUDA_MODULE_H_

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/backend/backend.h"
#include "kernels/backend/device_functions.h"
#include "kernels/backend/shared_device_memory.h"

namespace swizzle::cuda {

inline constexpr char kModuleFile[] = "libswizzle_cuda.so";
// Program and module have to be of one build: the types of backend.h pass between them.
inline constexpr char kModuleBuild[] = SWIZZLE_VERSION " " __VERSION__;

struct ModuleFunctions {
  const char* build = kModuleBuild;
  StatusOr<int> (*count_devices)() = nullptr;
  StatusOr<std::unique_ptr<Backend>> (*new_backend)(int ordinal) = nullptr;
  StatusOr<const DeviceFunctions*> (*functions)() = nullptr;
  StatusOr<double> (*time_sparse_input)(Backend& gpu, const Problem& problem, const Weight& weight,
                                        std::span<const float> input) = nullptr;
  StatusOr<std::unique_ptr<SharedDeviceMemory>> (*open_ipc_memory)(int ordinal, std::string_view handle) = nullptr;
};

// The variable of the environment that names the module's file, whatever else does.
inline constexpr char kModuleVariable[] = "SWIZZLE_CUDA_MODULE";
// From now on the module is this file, unless it has been opened already. Thread-safe.
void UseModule(std::filesystem::path file);

// What the module exports, with C linkage.
inline constexpr char kModuleEntry[] = "SwizzleCudaModule";
using ModuleEntry = const ModuleFunctions* (*)();

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CUDA_MODULE_H_
