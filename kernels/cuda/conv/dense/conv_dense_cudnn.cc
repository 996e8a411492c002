#include "kernels/cuda/conv/dense/conv_dense_cudnn.h"

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/real_types.h"
#include "kernels/cuda/conv/dense/dense_epilogue.h"
#include "kernels/cuda/conv/dense/dense_weight.h"
#include "kernels/cuda/runtime/cuda_stream.h"

namespace swizzle::cuda {
namespace {

Status CudnnStatus(cudnnStatus_t error, std::string_view what) {
  if (error == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return MakeError(StatusCode::kInternal, "cuDNN could not ", what, ": ", cudnnGetErrorString(error));
}

// For one problem, in the order of the heuristics, those that fit the workspace.
struct Algorithms {
  std::vector<cudnnConvolutionFwdAlgo_t> fused;  // with bias, residual and activation
  std::vector<cudnnConvolutionFwdAlgo_t> plain;  // of the convolution alone
};

// That answers are kept of; then all are forgotten. Images may come in any number of sizes.
constexpr size_t kMostProblems = 4096;

// A stream's handle, and what cuDNN's heuristics said of each problem: asking them was two fifths of the time in which
// ResNet-50 was tuned.
struct Cudnn {
  Cudnn() = default;
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;
  ~Cudnn() {
    if (handle != nullptr) cudnnDestroy(handle);
  }
  cudnnHandle_t handle = nullptr;
  std::map<std::vector<int64_t>, Algorithms> algorithms;
};

// The stream's, made when first asked for: not while it records, since what is recorded ran before.
StatusOr<Cudnn*> CudnnOf(CudaStream& stream) {
  if (stream.cudnn() == nullptr) {
    const auto made = std::make_shared<Cudnn>();
    SWIZZLE_RETURN_IF_ERROR(CudnnStatus(cudnnCreate(&made->handle), "start"));
    SWIZZLE_RETURN_IF_ERROR(CudnnStatus(cudnnSetStream(made->handle, stream.queue()), "use a stream"));
    stream.cudnn() = made;
  }
  return static_cast<Cudnn*>(stream.cudnn().get());
}

// A descriptor of cuDNN's, destroyed with its owner.
template <typename Handle, cudnnStatus_t (*kCreate)(Handle*), cudnnStatus_t (*kDestroy)(Handle)>
struct Descriptor {
  Descriptor() { kCreate(&handle); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { kDestroy(handle); }
  Handle handle = nullptr;
};
using TensorDesc = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDesc = Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvDesc =
    Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>;
using ActivationDesc =
    Descriptor<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor>;

cudnnDataType_t CudnnType(DType dtype) {
  return VisitReal(dtype, [&]<DType kType>() {
    if constexpr (kType == DType::kFloat16) return CUDNN_DATA_HALF;
    if constexpr (kType == DType::kBFloat16) return CUDNN_DATA_BFLOAT16;
    if constexpr (kType == DType::kFloat32) return CUDNN_DATA_FLOAT;
  });
}

cudnnStatus_t Describe(const Extent& extent, DType dtype, TensorDesc& desc) {
  return cudnnSetTensor4dDescriptor(desc.handle, CUDNN_TENSOR_NHWC, CudnnType(dtype), static_cast<int>(extent.batch),
                                    static_cast<int>(extent.channels), static_cast<int>(extent.height),
                                    static_cast<int>(extent.width));
}

// What cuDNN wants to know of a problem.
struct Convolution {
  TensorDesc input, output, bias;
  FilterDesc filter;
  ConvDesc window;
  ActivationDesc activation;

  Status Init(const Problem& problem) {
    const Window& w = problem.window();
    const auto channels = static_cast<int>(problem.output.channels);
    const bool relu = IsRelu(problem.epilogue);
    const std::array<cudnnStatus_t, 7> steps = {
        Describe(problem.input, problem.to.dtype, input),
        Describe(problem.output, problem.to.dtype, output),
        Describe(Extent{1, problem.output.channels}, problem.to.dtype, bias),
        cudnnSetFilter4dDescriptor(filter.handle, CudnnType(problem.to.dtype), CUDNN_TENSOR_NHWC, channels,
                                   static_cast<int>(problem.input.channels), w.kernel_h, w.kernel_w),
        cudnnSetConvolution2dDescriptor(window.handle, w.pad_top, w.pad_left, w.stride_h, w.stride_w, w.dilation_h,
                                        w.dilation_w, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        cudnnSetConvolutionMathType(window.handle,
                                    problem.to.dtype == DType::kFloat32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH),
        cudnnSetActivationDescriptor(activation.handle, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                     CUDNN_NOT_PROPAGATE_NAN, 0.0)};
    for (const cudnnStatus_t step : steps) SWIZZLE_RETURN_IF_ERROR(CudnnStatus(step, "describe a convolution"));
    return absl::OkStatus();
  }
};

// What the heuristics go by.
std::vector<int64_t> KeyOf(const Problem& problem) {
  const Extent &in = problem.input, &out = problem.output;
  const Window& w = problem.window();
  return {in.batch,
          in.channels,
          in.height,
          in.width,
          out.channels,
          out.height,
          out.width,
          w.kernel_h,
          w.kernel_w,
          w.stride_h,
          w.stride_w,
          w.dilation_h,
          w.dilation_w,
          w.pad_top,
          w.pad_left,
          static_cast<int64_t>(problem.to.dtype),
          IsRelu(problem.epilogue)};
}

StatusOr<Algorithms> FindAlgorithms(const Problem& problem, const Convolution& conv, cudnnHandle_t handle,
                                    size_t workspace_bytes) {
  std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> choices = {};
  int found = 0;
  SWIZZLE_RETURN_IF_ERROR(CudnnStatus(cudnnGetConvolutionForwardAlgorithm_v7(
                                          handle, conv.input.handle, conv.filter.handle, conv.window.handle,
                                          conv.output.handle, static_cast<int>(choices.size()), &found, choices.data()),
                                      "find an algorithm for a convolution"));
  Algorithms algorithms;
  for (const auto& choice : std::span(choices).first(found)) {
    if (choice.status != CUDNN_STATUS_SUCCESS || choice.memory > workspace_bytes) continue;
    algorithms.plain.push_back(choice.algo);
    // The only one that takes the identity for an activation.
    if (!IsRelu(problem.epilogue) && choice.algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) continue;
    algorithms.fused.push_back(choice.algo);
  }
  return algorithms;
}

// Tries them until one takes the problem, which is then the first.
cudnnStatus_t TryInOrder(std::vector<cudnnConvolutionFwdAlgo_t>& algorithms,
                         absl::FunctionRef<cudnnStatus_t(cudnnConvolutionFwdAlgo_t)> run) {
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  const auto takes = [&](cudnnConvolutionFwdAlgo_t algorithm) {
    return (status = run(algorithm)) == CUDNN_STATUS_SUCCESS;
  };
  const auto taking = std::ranges::find_if(algorithms, takes);
  if (taking != algorithms.end()) algorithms.erase(algorithms.begin(), taking);
  return status;
}

// What no algorithm does at once: the convolution on top of the residual, then the bias, then the activation.
cudnnStatus_t QueueApart(const KernelArgs& args, CudaStream& stream, const Convolution& conv, Cudnn& cudnn,
                         Algorithms& algorithms, void* sums) {
  const Problem& problem = *args.problem;
  const DenseWeight& weight = DenseWeight::From(args);
  const std::span<std::byte> workspace = stream.cublas_workspace();
  const bool residual = problem.epilogue.residual;
  const float one = 1, others = residual ? 1 : 0, none = 0;
  if (residual) stream.Copy(sums, args.inputs[1].data, StorageBytes(problem.output, problem.to));
  cudnnStatus_t status = TryInOrder(algorithms.plain, [&](cudnnConvolutionFwdAlgo_t algorithm) {
    return cudnnConvolutionForward(cudnn.handle, &one, conv.input.handle, args.inputs[0].data, conv.filter.handle,
                                   weight.matrix(), conv.window.handle, algorithm, workspace.data(), workspace.size(),
                                   &others, conv.output.handle, sums);
  });
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = cudnnAddTensor(cudnn.handle, &one, conv.bias.handle, weight.bias(), &one, conv.output.handle, sums);
  if (status != CUDNN_STATUS_SUCCESS || !IsRelu(problem.epilogue)) return status;
  return cudnnActivationForward(cudnn.handle, conv.activation.handle, &one, conv.output.handle, sums, &none,
                                conv.output.handle, sums);
}

Status QueueConvolution(const KernelArgs& args, CudaStream& stream) {
  const Problem& problem = *args.problem;
  const DenseWeight& weight = DenseWeight::From(args);
  SWIZZLE_ASSIGN_OR_RETURN(Cudnn* const cudnn, CudnnOf(stream));
  Convolution conv;
  SWIZZLE_RETURN_IF_ERROR(conv.Init(problem));
  const std::span<std::byte> workspace = stream.cublas_workspace();
  const std::vector<int64_t> key = KeyOf(problem);
  if (!cudnn->algorithms.contains(key)) {
    SWIZZLE_ASSIGN_OR_RETURN(Algorithms found, FindAlgorithms(problem, conv, cudnn->handle, workspace.size()));
    if (cudnn->algorithms.size() >= kMostProblems) cudnn->algorithms.clear();
    cudnn->algorithms[key] = std::move(found);
  }
  Algorithms& algorithms = cudnn->algorithms[key];
  const bool residual = problem.epilogue.residual;
  const float one = 1, others = residual ? 1 : 0;
  void* const sums = args.output.IsWhole() ? args.output.data : args.workspace.data();
  const void* const added = residual ? args.inputs[1].data : sums;
  cudnnStatus_t status = TryInOrder(algorithms.fused, [&](cudnnConvolutionFwdAlgo_t algorithm) {
    return cudnnConvolutionBiasActivationForward(
        cudnn->handle, &one, conv.input.handle, args.inputs[0].data, conv.filter.handle, weight.matrix(),
        conv.window.handle, algorithm, workspace.data(), workspace.size(), &others, conv.output.handle, added,
        conv.bias.handle, weight.bias(), conv.activation.handle, conv.output.handle, sums);
  });
  if (status != CUDNN_STATUS_SUCCESS) status = QueueApart(args, stream, conv, *cudnn, algorithms, sums);
  return CudnnStatus(status, "queue a convolution");
}

// Whether windows with `pad` at both ends are as many as the problem says.
bool PadsEvenly(int64_t input, int64_t output, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  return (input + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1 == output;
}

}  // namespace

bool AcceptsConvCudnn(const Problem& problem) {
  const Window& w = problem.window();
  return PadsEvenly(problem.input.height, problem.output.height, w.kernel_h, w.stride_h, w.pad_top, w.dilation_h) &&
         PadsEvenly(problem.input.width, problem.output.width, w.kernel_w, w.stride_w, w.pad_left, w.dilation_w);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCudnn(const Weight& weight, const Problem& problem) {
  return DenseWeight::Make(
      weight, problem,
      {.dtype = problem.to.dtype, .bias_dtype = problem.to.dtype, .channels_innermost = true, .always_bias = true});
}

bool ConvCudnnWritesPitched(const Problem& problem) { return problem.epilogue.function.has_value(); }

size_t ConvCudnnWorkspaceBytes(const Problem& problem) {
  return ConvCudnnWritesPitched(problem) ? StorageBytes(problem.output, problem.to) : 0;
}

void ConvCudnn(const KernelArgs& args, Stream& stream) {
  CudaStream& cuda_stream = CudaStream::From(stream);
  cuda_stream.Report(QueueConvolution(args, cuda_stream));
  if (!args.output.IsWhole()) return FinishSums(args, args.workspace.data(), cuda_stream);
  if (NeedsFinish(args.problem->epilogue)) FinishOutput(args, cuda_stream);
}

}  // namespace swizzle::cuda
