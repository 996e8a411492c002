#include "kernels/cuda/cuda_module.h"

#include <dlfcn.h>

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

fs::path NamedModule() {
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

// Where it was said to be; beside the program or this library, as builds have it; or where it is installed. Empty:
// nowhere.
fs::path FindModule() {
  if (fs::path named = NamedModule(); !named.empty()) return named;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path(), own = FolderOfThis();
  for (const fs::path& folder : {program, program.parent_path() / "lib/swizzle", own, own.parent_path() / "swizzle"}) {
    if (const fs::path path = folder / cuda::kModuleFile; fs::exists(path, ignored)) return path;
  }
  return {};
}

// The driver's library; CUDA needs it, and it is small. Without it the module, of hundreds of megabytes with what it
// links to, is not even looked at.
bool HasDriver() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

StatusOr<const ModuleFunctions*> OpenModule() {
  const fs::path path = FindModule();
  if (path.empty()) {
    return Unimplemented("this build has no CUDA backend (", cuda::kModuleFile,
                         "); use --device=cpu, or build with nvcc on the PATH");
  }
  if (!HasDriver()) {
    return MakeError(StatusCode::kUnavailable,
                     "there is no NVIDIA driver on this machine (libcuda.so.1); use --device=cpu");
  }
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return MakeError(StatusCode::kUnavailable,
                     "the CUDA backend cannot be loaded; use --device=cpu, or install CUDA's libraries: ", dlerror());
  }
  const auto entry = reinterpret_cast<cuda::ModuleEntry>(dlsym(module, cuda::kModuleEntry));
  const ModuleFunctions* const functions = entry == nullptr ? nullptr : entry();
  if (functions == nullptr || std::string_view(functions->build) != cuda::kModuleBuild) {
    return MakeError(StatusCode::kUnavailable, path.string(),
                     " is of another build than this program; install both anew");
  }
  return functions;
}

// Opened once, never closed.
const StatusOr<const ModuleFunctions*>& Module() {
  static const StatusOr<const ModuleFunctions*> module = OpenModule();
  return module;
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
