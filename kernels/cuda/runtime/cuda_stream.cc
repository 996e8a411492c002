#include "kernels/cuda/runtime/cuda_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cuda/runtime/lead_in.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

// What cuBLAS recommends for Hopper; less loses its split kernels.
constexpr size_t kCublasWorkspace = size_t{32} << 20;

// Of the second cache before something is timed: on an H200 the most take 10 ms.
constexpr int kMostSweeps = 256;

// How often the kernel before what is timed is timed alone, and what anything takes at least.
constexpr int kLeadIns = 25;
constexpr absl::Duration kLeast = absl::Nanoseconds(50);

class Graph final : public Recording {
 public:
  Graph(cudaGraphExec_t graph, cudaStream_t queue, Device& device) : graph_(graph), queue_(queue), device_(device) {}
  ~Graph() override { cudaGraphExecDestroy(graph_); }

  Status Replay() override {
    device_.Use();
    const cudaError_t error = cudaGraphLaunch(graph_, queue_);
    device_.Note(error);
    return CudaStatus(error, "launch a recorded plan");
  }

 private:
  const cudaGraphExec_t graph_;
  const cudaStream_t queue_;
  Device& device_;
};

}  // namespace

void Device::Note(cudaError_t error) const {
  int none = cudaSuccess;
  if (IsSticky(error)) sticky_error.compare_exchange_strong(none, error);
}

StatusOr<std::unique_ptr<CudaStream>> CudaStream::Make(Device& device) {
  std::unique_ptr<CudaStream> stream(new CudaStream(device));
  SWIZZLE_RETURN_IF_ERROR(stream->Init());
  return stream;
}

Status CudaStream::Init() {
  device_.Use();
  SWIZZLE_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&queue_, cudaStreamNonBlocking), "make a stream");
  SWIZZLE_RETURN_IF_CUDA_ERROR(cudaEventCreate(&start_), "make an event");
  SWIZZLE_RETURN_IF_CUDA_ERROR(cudaEventCreate(&stop_), "make an event");
  SWIZZLE_RETURN_IF_CUDA_ERROR(cublasLtCreate(&cublas_), "start");
  SWIZZLE_ASSIGN_OR_RETURN(cublas_workspace_, DeviceArray<std::byte>::Allocate(kCublasWorkspace));
  return absl::OkStatus();
}

CudaStream::~CudaStream() {
  device_.Use();
  if (queue_ != nullptr) cudaStreamSynchronize(queue_);
  cudnn_.reset();
  if (cublas_ != nullptr) cublasLtDestroy(cublas_);
  if (start_ != nullptr) cudaEventDestroy(start_);
  if (stop_ != nullptr) cudaEventDestroy(stop_);
  if (queue_ != nullptr) cudaStreamDestroy(queue_);
}

Status CudaStream::Check(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) error = cudaGetLastError();
  device_.Note(error);
  const Status reported = std::exchange(reported_, absl::OkStatus());
  return error == cudaSuccess ? reported : CudaStatus(error, what);
}

void CudaStream::Copy(void* to, const void* from, size_t bytes) {
  cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue_);
}

void CudaStream::Run(Work work) {
  device_.Use();
  work();
}

StatusOr<absl::Duration> CudaStream::Time(Work work, Operands recent) {
  met_open_ = false;
  StatusOr<absl::Duration> time = TimeAsItIs(work, recent);
  if (!time.ok() || !met_open_) return time;
  chooses_ = true;
  work();
  chooses_ = false;
  return TimeAsItIs(work, recent);
}

StatusOr<absl::Duration> CudaStream::TimeAsItIs(Work work, Operands recent) {
  device_.Use();
  if (flush_.size() == 0) {
    SWIZZLE_ASSIGN_OR_RETURN(flush_, DeviceArray<std::byte>::Allocate(std::max<size_t>(2 * device_.l2_bytes, 1)));
  }
  // Sweeps of the second cache also keep the device busy while the work is queued, so that no launch is timed. Where
  // the host takes longer than one (libraries look for an algorithm each time), all is done again behind more of them.
  bool queued_in_time = false;
  for (int sweeps = 1; !queued_in_time && sweeps <= kMostSweeps; sweeps *= 4) {
    for (int i = 0; i < sweeps; ++i) cudaMemsetAsync(flush_.data(), 0, flush_.size(), queue_);
    for (const auto operand : recent) {  // reading them brings them into the cache
      const size_t bytes = std::min(operand.size(), flush_.size());
      cudaMemcpyAsync(flush_.data(), operand.data(), bytes, cudaMemcpyDefault, queue_);
    }
    cudaEventRecord(start_, queue_);
    QueueLeadIn(queue_, device_.multiprocessors);
    work();
    const cudaError_t queued = cudaGetLastError();
    queued_in_time = cudaEventQuery(start_) == cudaErrorNotReady;
    if (queued_in_time) cudaGetLastError();  // it was no error
    cudaEventRecord(stop_, queue_);
    const cudaError_t ended = cudaEventSynchronize(stop_);
    SWIZZLE_RETURN_IF_ERROR(Check(queued == cudaSuccess ? ended : queued, "time a kernel"));
  }
  float milliseconds = 0;
  SWIZZLE_RETURN_IF_ERROR(Check(cudaEventElapsedTime(&milliseconds, start_, stop_), "time a kernel"));
  SWIZZLE_ASSIGN_OR_RETURN(const absl::Duration lead_in, LeadIn());
  return std::max(absl::Milliseconds(milliseconds) - lead_in, kLeast);
}

StatusOr<absl::Duration> CudaStream::LeadIn() {
  if (lead_in_ > absl::ZeroDuration()) return lead_in_;
  std::array<float, kLeadIns> milliseconds = {};
  for (float& each : milliseconds) {
    cudaMemsetAsync(flush_.data(), 0, flush_.size(), queue_);
    cudaEventRecord(start_, queue_);
    QueueLeadIn(queue_, device_.multiprocessors);
    cudaEventRecord(stop_, queue_);
    const cudaError_t ended = cudaEventSynchronize(stop_);
    SWIZZLE_RETURN_IF_ERROR(Check(ended, "time a kernel"));
    SWIZZLE_RETURN_IF_ERROR(Check(cudaEventElapsedTime(&each, start_, stop_), "time a kernel"));
  }
  return lead_in_ = absl::Milliseconds(*std::ranges::min_element(milliseconds));
}

StatusOr<std::unique_ptr<Recording>> CudaStream::Record(Work work) {
  device_.Use();
  SWIZZLE_RETURN_IF_ERROR(Check(cudaSuccess, "run what was queued before"));
  SWIZZLE_RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(queue_, cudaStreamCaptureModeThreadLocal), "record a plan");
  work();
  cudaGraph_t graph = nullptr;
  Status status = Check(cudaStreamEndCapture(queue_, &graph), "record a plan");
  cudaGraphExec_t executable = nullptr;
  if (status.ok()) status = Check(cudaGraphInstantiate(&executable, graph, 0), "make a recorded plan runnable");
  if (graph != nullptr) cudaGraphDestroy(graph);
  SWIZZLE_RETURN_IF_ERROR(status);
  return std::make_unique<Graph>(executable, queue_, device_);
}

Status CudaStream::Synchronize() {
  device_.Use();
  return Check(cudaStreamSynchronize(queue_), "run a batch");
}

cudaStream_t QueueOf(Stream& stream) { return CudaStream::From(stream).queue(); }

int MultiprocessorsOf(Stream& stream) { return CudaStream::From(stream).device().multiprocessors; }

}  // namespace swizzle::cuda
