#include "kernels/cpu/conv/onednn_conv.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <limits>
#include <string_view>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/onednn_call.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

using dnnl::convolution_forward;
using dnnl::memory;
using Tag = memory::format_tag;

enum class Kind { kConv, kStem, kDepthwise };

int64_t Blocks(int64_t channels) { return CeilDiv(channels, kBlockChannels); }

// A layer cut down to some images and to output channels [first_channel, first_channel + channels).
struct Part {
  int64_t images;
  int64_t first_channel;
  int64_t channels;
};

// How many images one call takes: large groups first. Small planes need large groups to reuse the weights.
std::vector<int64_t> GroupSizes(const Problem& problem) {
  if (problem.output.plane() < 16) return {64, 8, 1};
  return {8, 1};
}

// One image's output channels in nearly equal runs of whole blocks, for `threads` threads.
std::vector<Part> ChannelParts(int64_t channels, int threads) {
  const int64_t blocks = Blocks(channels);
  const int64_t count = std::min<int64_t>(blocks, threads);
  std::vector<Part> parts;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = blocks * i / count * kBlockChannels;
    const int64_t end = std::min(blocks * (i + 1) / count * kBlockChannels, channels);
    parts.push_back({1, first, end - first});
  }
  return parts;
}

dnnl::primitive_attr Attributes(const Epilogue& epilogue) {
  dnnl::post_ops post_ops;
  if (epilogue.residual) post_ops.append_sum(1.0f);
  if (epilogue.low == 0 && epilogue.high == std::numeric_limits<float>::infinity()) {
    post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  } else if (epilogue.Clamps()) {
    post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, epilogue.low, epilogue.high);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post_ops);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

memory::desc Describe(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

memory::dims WeightDims(Kind kind, const Problem& problem, int64_t channels) {
  const Window& window = problem.window();
  if (kind == Kind::kDepthwise) return {channels, 1, 1, window.kernel_h, window.kernel_w};
  return {channels, problem.input.channels, window.kernel_h, window.kernel_w};
}

Tag WeightTag(Kind kind) {
  switch (kind) {
    case Kind::kConv:
      return Tag::OIhw16i16o;
    case Kind::kStem:
      return Tag::Ohwi16o;
    case Kind::kDepthwise:
      return Tag::Goihw16g;
  }
  return Tag::undef;
}

convolution_forward::primitive_desc DescribePart(Kind kind, const Problem& problem, const Part& part, bool bias) {
  const Window& window = problem.window();
  const int64_t in_channels = kind == Kind::kDepthwise ? part.channels : problem.input.channels;
  const auto source = Describe({part.images, in_channels, problem.input.height, problem.input.width},
                               kind == Kind::kStem ? Tag::nchw : Tag::nChw16c);
  const auto weights = Describe(WeightDims(kind, problem, part.channels), WeightTag(kind));
  const auto target = Describe({part.images, part.channels, problem.output.height, problem.output.width}, Tag::nChw16c);
  const memory::dims strides = {window.stride_h, window.stride_w};
  const memory::dims dilation = {window.dilation_h - 1, window.dilation_w - 1};
  const memory::dims pads_begin = {window.pad_top, window.pad_left};
  const memory::dims pads_end = {window.pad_bottom, window.pad_right};
  const auto inference = dnnl::prop_kind::forward_inference;
  const auto direct = dnnl::algorithm::convolution_direct;
  const auto describe = [&](const auto&... tensors) {
    return convolution_forward::desc(inference, direct, tensors..., strides, dilation, pads_begin, pads_end);
  };
  const auto description =
      bias ? describe(source, weights, Describe({part.channels}, Tag::a), target) : describe(source, weights, target);
  OnednnStream();
  return {description, Attributes(problem.epilogue), OnednnEngine()};
}

// One primitive, ready to run on the part of a layer that it was made for.
class PartConv {
 public:
  PartConv(Kind kind, const Problem& problem, const Part& part, bool bias)
      : part_(part), description_(DescribePart(kind, problem, part, bias)), primitive_(description_) {}

  const Part& part() const { return part_; }
  size_t scratchpad_bytes() const { return description_.scratchpad_desc().get_size(); }

  struct Buffers {
    const float* source;
    const float* weights;
    const float* bias;
    float* target;
    std::byte* scratchpad;
  };
  Status Run(const Buffers& buffers) const {
    return CallOnednn([&] { Execute(buffers); });
  }

 private:
  void Execute(const Buffers& buffers) const {
    const auto tensor = [](const memory::desc& desc, const void* data) {
      return memory(desc, OnednnEngine(), const_cast<void*>(data));
    };
    dnnl::stream& stream = OnednnStream();
    primitive_.execute(stream, {{DNNL_ARG_SRC, tensor(description_.src_desc(), buffers.source)},
                                {DNNL_ARG_WEIGHTS, tensor(description_.weights_desc(), buffers.weights)},
                                {DNNL_ARG_BIAS, tensor(description_.bias_desc(), buffers.bias)},
                                {DNNL_ARG_DST, tensor(description_.dst_desc(), buffers.target)},
                                {DNNL_ARG_SCRATCHPAD, tensor(description_.scratchpad_desc(), buffers.scratchpad)}});
    stream.wait();
  }

  const Part part_;
  const convolution_forward::primitive_desc description_;
  const convolution_forward primitive_;
};

struct FreeAligned {
  void operator()(float* data) const { std::free(data); }
};
using AlignedFloats = std::unique_ptr<float, FreeAligned>;

// A layer's weights in oneDNN's order.
memory::desc PackedWeights(Kind kind, const Problem& problem) {
  return Describe(WeightDims(kind, problem, problem.output.channels), WeightTag(kind));
}

// In oneDNN's blocked order, output blocks outermost: the same for every plane.
struct BlockedWeights {
  std::vector<float> bias;
  size_t floats = 0;
  AlignedFloats values;

  size_t bytes() const { return (floats + bias.size()) * sizeof(float); }
};

// A layer's weights, and the primitives that read them.
class OnednnConv final : public PackedWeight {
 public:
  // shared: whether another one holds the weights, too. Throws what oneDNN does.
  OnednnConv(Kind kind, const Problem& problem, std::shared_ptr<const BlockedWeights> weights, bool shared)
      : kind_(kind), shared_(shared), weights_(std::move(weights)) {
    const bool bias = !weights_->bias.empty();
    for (int64_t images : GroupSizes(problem)) {
      groups_.emplace_back(kind, problem, Part{images, 0, problem.output.channels}, bias);
    }
    for (const Part& part : ChannelParts(problem.output.channels, problem.threads)) {
      channel_parts_.emplace_back(kind, problem, part, bias);
    }
  }

  Kind kind() const { return kind_; }
  const std::shared_ptr<const BlockedWeights>& weights() const { return weights_; }
  size_t bytes() const override {
    constexpr size_t kCode = size_t{1} << 15;  // of a primitive, about: oneDNN doesn't say
    return (groups_.size() + channel_parts_.size()) * kCode + (shared_ ? 0 : weights_->bytes());
  }

  // Images [begin, end), all output channels.
  Status RunImages(const KernelArgs& args, int64_t begin, int64_t end, std::byte* scratchpad) const {
    for (const PartConv& group : groups_) {
      for (; end - begin >= group.part().images; begin += group.part().images) {
        SWIZZLE_RETURN_IF_ERROR(RunPart(args, group, begin, scratchpad));
      }
    }
    return absl::OkStatus();
  }

  int64_t channel_parts() const { return static_cast<int64_t>(channel_parts_.size()); }
  Status RunChannelPart(const KernelArgs& args, int64_t image, int64_t part, std::byte* scratchpad) const {
    return RunPart(args, channel_parts_[part], image, scratchpad);
  }

 private:
  Status RunPart(const KernelArgs& args, const PartConv& conv, int64_t image, std::byte* scratchpad) const {
    const Problem& problem = *args.problem;
    const std::vector<float>& bias = weights_->bias;
    const int64_t first = conv.part().first_channel;
    const int64_t out_blocks = Blocks(problem.output.channels);
    const int64_t offset = (image * out_blocks * kBlockChannels + first) * problem.output.plane();
    float* target = args.Output<float>() + offset;
    const int64_t floats = conv.part().images * Blocks(conv.part().channels) * kBlockChannels * problem.output.plane();
    if (const float* residual = args.Residual<float>()) std::memcpy(target, residual + offset, floats * sizeof(float));
    SWIZZLE_RETURN_IF_ERROR(conv.Run({args.Input<float>(0) + SourceOffset(problem, image, first),
                                      weights_->values.get() + weights_->floats / out_blocks * (first / kBlockChannels),
                                      bias.empty() ? nullptr : bias.data() + first, target, scratchpad}));
    if (problem.epilogue.function) ApplyFunction(*problem.epilogue.function, target, floats);
    return absl::OkStatus();
  }

  int64_t SourceOffset(const Problem& problem, int64_t image, int64_t first_channel) const {
    if (kind_ == Kind::kStem) return image * problem.input.channels * problem.input.plane();
    const int64_t channels = Blocks(problem.input.channels) * kBlockChannels;
    return (image * channels + (kind_ == Kind::kDepthwise ? first_channel : 0)) * problem.input.plane();
  }

  const Kind kind_;
  const bool shared_;
  const std::shared_ptr<const BlockedWeights> weights_;
  std::vector<PartConv> groups_;         // all output channels, largest group of images first, one image last
  std::vector<PartConv> channel_parts_;  // one image each
};

// Throws what oneDNN does. REQUIRES: there is room for PackedWeights.
void PackWeights(Kind kind, const Weight& weight, const Problem& problem, float* values) {
  DenseMatrix matrix = weight.ToDense();
  const memory::dims dims = WeightDims(kind, problem, problem.output.channels);
  const auto plain = Describe(dims, kind == Kind::kDepthwise ? Tag::goihw : Tag::oihw);
  memory from(plain, OnednnEngine(), matrix.values.data());
  memory to(PackedWeights(kind, problem), OnednnEngine(), values);
  dnnl::stream& stream = OnednnStream();
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

StatusOr<std::unique_ptr<PackedWeight>> Prepare(Kind kind, const Weight& weight, const Problem& problem) {
  size_t bytes = 0;
  SWIZZLE_RETURN_IF_ERROR(CallOnednn([&] { bytes = PackedWeights(kind, problem).get_size(); }));
  AlignedFloats values(static_cast<float*>(std::aligned_alloc(kBufferAlignment, RoundUp(bytes, kBufferAlignment))));
  if (values == nullptr) {
    return MakeError(StatusCode::kResourceExhausted, "cannot allocate ", bytes, " bytes for a convolution's weights");
  }
  std::unique_ptr<PackedWeight> conv;
  SWIZZLE_RETURN_IF_ERROR(CallOnednn([&] {
    PackWeights(kind, weight, problem, values.get());
    auto weights =
        std::make_shared<BlockedWeights>(BlockedWeights{weight.bias, bytes / sizeof(float), std::move(values)});
    conv = std::make_unique<OnednnConv>(kind, problem, std::move(weights), /*shared=*/false);
  }));
  return conv;
}

size_t SlotBytes(size_t scratchpad_bytes) { return RoundUp(scratchpad_bytes, kBufferAlignment); }

// What no backend allocates: where oneDNN can't say how much it needs, having no memory left to find out, the plan ends
// in the RESOURCE_EXHAUSTED of its allocation.
constexpr size_t kImpossibleBytes = size_t{1} << 60;

// Enough for any primitive of the layer, with or without bias, for each thread. Throws what oneDNN does.
size_t DescribedWorkspace(Kind kind, const Problem& problem) {
  size_t bytes = 0;
  const auto reserve = [&](const Part& part) {
    bytes = std::max(bytes, DescribePart(kind, problem, part, true).scratchpad_desc().get_size());
  };
  for (int64_t images : GroupSizes(problem)) reserve({images, 0, problem.output.channels});
  for (const Part& part : ChannelParts(problem.output.channels, problem.threads)) reserve(part);
  return SlotBytes(bytes) * problem.threads;
}

size_t WorkspaceBytes(Kind kind, const Problem& problem) {
  size_t bytes = 0;
  const Status status = CallOnednn([&] { bytes = DescribedWorkspace(kind, problem); });
  return status.ok() ? bytes : kImpossibleBytes;
}

// Whether oneDNN has generated code for the layer, rather than its reference loops, which take seconds.
bool IsOptimised(Kind kind, const Problem& problem) {
  bool optimised = false;
  const Status status = CallOnednn([&] {
    const Part whole{1, 0, problem.output.channels};
    optimised = std::string_view(DescribePart(kind, problem, whole, true).impl_info_str()).starts_with("jit");
  });
  return status.ok() && optimised;
}

}  // namespace

bool AcceptsOnednnConv(const Problem& problem) {
  return EpilogueKeepsZero(problem) && IsOptimised(Kind::kConv, problem);
}

bool AcceptsOnednnStem(const Problem& problem) {
  return EpilogueKeepsZero(problem) && problem.input.channels <= 4 && IsOptimised(Kind::kStem, problem);
}

bool AcceptsOnednnDepthwise(const Problem& problem) {
  return EpilogueKeepsZero(problem) && IsOptimised(Kind::kDepthwise, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnConv(const Weight& weight, const Problem& problem) {
  return Prepare(Kind::kConv, weight, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnStem(const Weight& weight, const Problem& problem) {
  return Prepare(Kind::kStem, weight, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnDepthwise(const Weight& weight, const Problem& problem) {
  return Prepare(Kind::kDepthwise, weight, problem);
}

StatusOr<SharedWeight> OnednnConvForPlane(const SharedWeight& form, const Problem& problem) {
  const auto& conv = static_cast<const OnednnConv&>(*form);
  SharedWeight made;
  SWIZZLE_RETURN_IF_ERROR(
      CallOnednn([&] { made = std::make_shared<OnednnConv>(conv.kind(), problem, conv.weights(), /*shared=*/true); }));
  return made;
}

size_t OnednnConvWorkspaceBytes(const Problem& problem) { return WorkspaceBytes(Kind::kConv, problem); }
size_t OnednnStemWorkspaceBytes(const Problem& problem) { return WorkspaceBytes(Kind::kStem, problem); }
size_t OnednnDepthwiseWorkspaceBytes(const Problem& problem) { return WorkspaceBytes(Kind::kDepthwise, problem); }

// Each thread takes an equal number of whole images; the images left over are shared by output channels.
void RunOnednnConv(const KernelArgs& args, Stream& stream) {
  const auto& conv = static_cast<const OnednnConv&>(*args.weight);
  const int64_t batch = args.problem->input.batch;
  const int64_t threads = stream.threads();
  const int64_t images = batch / threads;
  const size_t slot_bytes = args.workspace.size() / threads / kBufferAlignment * kBufferAlignment;
  CpuStream& cpu_stream = CpuStream::From(stream);
  cpu_stream.ParallelFor(threads, [&](int64_t slot) {
    std::byte* scratchpad = args.workspace.data() + slot * slot_bytes;
    cpu_stream.Keep(conv.RunImages(args, slot * images, (slot + 1) * images, scratchpad));
    for (int64_t image = images * threads; image < batch; ++image) {
      for (int64_t part = slot; part < conv.channel_parts(); part += threads) {
        cpu_stream.Keep(conv.RunChannelPart(args, image, part, scratchpad));
      }
    }
  });
}

}  // namespace swizzle::cpu
