// Takes a GPU away from a program that runs: preloaded into it (LD_PRELOAD), it waits for the file that LOSE_DEVICE_AT
// names to appear, then has a kernel write to nobody's memory. CUDA gives the process's streams nothing more after
// that.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace {

__global__ void WriteTo(float* nobodys) { *nobodys = 1; }

void LoseDeviceAt(const std::string& file) {
  while (access(file.c_str(), F_OK) != 0) usleep(10000);
  WriteTo<<<1, 1>>>(reinterpret_cast<float*>(4096));  // in the context that all of a process shares
  cudaDeviceSynchronize();
}

__attribute__((constructor)) void Watch() {
  if (const char* file = std::getenv("LOSE_DEVICE_AT")) std::thread(LoseDeviceAt, std::string(file)).detach();
}

}  // namespace
