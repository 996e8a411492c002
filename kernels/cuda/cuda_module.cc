#include "kernels/cuda/cuda_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "kernels/base/mutex.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/ipc_memory.h"
#include "kernels/cuda/sparse_input.h"

namespace swizzle {
namespace {

using cuda::ModuleFunctions;

namespace fs = std::filesystem;

Mutex module_mutex;
fs::path named_module ABSL_GUARDED_BY(module_mutex);

// Where it was said to be; empty: nowhere.
fs::path NamedModule() {
  if (const char* const given = std::getenv(cuda::kModuleVariable); given != nullptr && *given != '\0') return given;
  const MutexLock lock(module_mutex);
  return named_module;
}

// The folder is that of the library that this is part of, or of the program, where it is part of that.
fs::path FolderOfThis() {
  Dl_info info;
  std::error_code ignored;
  const bool known = dladdr(reinterpret_cast<const void*>(&FolderOfThis), &info) != 0 && info.dli_fname != nullptr;
  return known ? fs::canonical(info.dli_fname, ignored).parent_path() : fs::path();
}

// Where it was said to be; beside the program or this library, as builds have it; or where it is installed. Else its
// name alone.
fs::path FindModule() {
  if (fs::path named = NamedModule(); !named.empty()) return named;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path(), own = FolderOfThis();
  for (const fs::path& folder : {program, program.parent_path() / "lib/swizzle", own, own.parent_path() / "swizzle"}) {
    if (const fs::path path = folder / cuda::kModuleFile; fs::exists(path, ignored)) return path;
  }
  return cuda::kModuleFile;
}

// The driver's library; CUDA needs it, and it is small. Without it the module, of hundreds of megabytes with what it
// links to, is not even looked at.
bool HasDriver() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

StatusOr<const ModuleFunctions*> OpenModule() {
  const fs::path path = FindModule();
  if (std::error_code ignored; !path.has_parent_path() || !fs::exists(path, ignored)) {
    return Unimplemented("the CUDA backend (", path.string(),
                         ") is not installed: pip install swizzle-engine-cuda, or Debian's package swizzle-cuda, or "
                         "build with nvcc on the PATH; the device 'cpu' needs none");
  }
  if (!HasDriver()) {
    return MakeError(StatusCode::kUnavailable,
                     "there is no NVIDIA driver on this machine (libcuda.so.1); the device 'cpu' needs none");
  }
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return MakeError(StatusCode::kUnavailable,
                     "the CUDA backend cannot be loaded; install CUDA's libraries, with pip nvidia-cublas and "
                     "nvidia-cudnn-cu13, or choose the device 'cpu', which needs none: ",
                     dlerror());
  }
  const auto entry = reinterpret_cast<cuda::ModuleEntry>(dlsym(module, cuda::kModuleEntry));
  const ModuleFunctions* const functions = entry == nullptr ? nullptr : entry();
  if (functions == nullptr || std::string_view(functions->build) != cuda::kModuleBuild) {
    return MakeError(StatusCode::kUnavailable, path.string(),
                     " is of another build than this program; install both anew");
  }
  return functions;
}

// Opened once, never closed. What is missing may be installed before it is asked for again.
StatusOr<const ModuleFunctions*> Module() {
  static Mutex mutex;
  static const ModuleFunctions* opened = nullptr;
  const MutexLock lock(mutex);
  if (opened == nullptr) {
    SWIZZLE_ASSIGN_OR_RETURN(opened, OpenModule());
  }
  return opened;
}

}  // namespace

void cuda::UseModule(fs::path file) {
  const MutexLock lock(module_mutex);
  named_module = std::move(file);
}

StatusOr<int> CountCudaDevices() {
  SWIZZLE_ASSIGN_OR_RETURN(const ModuleFunctions* const module, Module());
  return module->count_devices();
}

StatusOr<std::unique_ptr<Backend>> NewCudaBackend(int ordinal) {
  SWIZZLE_ASSIGN_OR_RETURN(const ModuleFunctions* const module, Module());
  return module->new_backend(ordinal);
}

StatusOr<const DeviceFunctions*> CudaDeviceFunctions() {
  SWIZZLE_ASSIGN_OR_RETURN(const ModuleFunctions* const module, Module());
  return module->functions();
}

StatusOr<double> TimeSparseInput(Backend& gpu, const Problem& problem, const Weight& weight,
                                 std::span<const float> input) {
  SWIZZLE_ASSIGN_OR_RETURN(const ModuleFunctions* const module, Module());
  return module->time_sparse_input(gpu, problem, weight, input);
}

StatusOr<std::unique_ptr<SharedDeviceMemory>> OpenCudaIpcMemory(int ordinal, std::string_view handle) {
  SWIZZLE_ASSIGN_OR_RETURN(const ModuleFunctions* const module, Module());
  return module->open_ipc_memory(ordinal, handle);
}

}  // namespace swizzle
