#include "kernels/cpu/conv/onednn_conv.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dnnl.hpp>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/onednn_call.h"
#include "kernels/cpu/conv/onednn_operands.h"
#include "kernels/cpu/conv/onednn_versions.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

using dnnl::convolution_forward;
using dnnl::memory;
using Tag = memory::format_tag;

enum class Kind { kConv, kStem, kDepthwise, kGrouped };

// What primitives are made for.
struct Form {
  Kind kind;
  int64_t groups = 1;  // kGrouped: more, of whole blocks of input and of output channels each
};

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

// Into how many parts an image is cut: one for each thread, or, where a function follows a depthwise layer, as many for
// each as keep what it reads in the second cache.
int64_t PartsFor(const Form& form, const Problem& problem) {
  constexpr int64_t kFloats = int64_t{1} << 16;
  if (form.kind != Kind::kDepthwise || !problem.epilogue.function) return problem.threads;
  const int64_t floats = problem.output.channels * problem.output.plane();
  return RoundUp(CeilDiv(floats, kFloats), static_cast<int64_t>(problem.threads));
}

// One image's output channels in nearly equal runs of whole blocks, or groups, for the problem's threads.
std::vector<Part> ChannelParts(const Form& form, const Problem& problem) {
  const int64_t channels = problem.output.channels;
  const int64_t unit = form.kind == Kind::kGrouped ? channels / form.groups : kBlockChannels;
  const int64_t units = CeilDiv(channels, unit);
  const int64_t count = std::min(units, PartsFor(form, problem));
  std::vector<Part> parts;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = units * i / count * unit;
    const int64_t end = std::min(units * (i + 1) / count * unit, channels);
    parts.push_back({1, first, end - first});
  }
  return parts;
}

// The input channels that so many output channels read, or that stand before those which output channels from this on
// read.
int64_t InputChannels(const Form& form, const Problem& problem, int64_t output_channels) {
  if (form.kind == Kind::kDepthwise) return output_channels;
  return problem.input.channels / form.groups * output_channels / (problem.output.channels / form.groups);
}

dnnl::primitive_attr Attributes(const Epilogue& epilogue) {
  dnnl::post_ops post_ops;
  if (epilogue.residual) post_ops.append_sum(1.0f);
  if (epilogue.low == 0 && epilogue.high == std::numeric_limits<float>::infinity()) {
    AppendEltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f, post_ops);
  } else if (epilogue.Clamps()) {
    AppendEltwise(dnnl::algorithm::eltwise_clip, epilogue.low, epilogue.high, post_ops);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post_ops);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

memory::desc Describe(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

memory::dims WeightDims(const Form& form, const Problem& problem, int64_t channels) {
  const Window& window = problem.window();
  if (form.kind == Kind::kDepthwise) return {channels, 1, 1, window.kernel_h, window.kernel_w};
  if (form.kind == Kind::kGrouped) {
    const int64_t outputs = problem.output.channels / form.groups, inputs = problem.input.channels / form.groups;
    return {channels / outputs, outputs, inputs, window.kernel_h, window.kernel_w};
  }
  return {channels, problem.input.channels, window.kernel_h, window.kernel_w};
}

Tag WeightTag(const Form& form) {
  switch (form.kind) {
    case Kind::kConv:
      return Tag::OIhw16i16o;
    case Kind::kStem:
      return Tag::Ohwi16o;
    case Kind::kDepthwise:
      return Tag::Goihw16g;
    case Kind::kGrouped:
      return Tag::gOIhw16i16o;
  }
  return Tag::undef;
}

convolution_forward::primitive_desc DescribePart(const Form& form, const Problem& problem, const Part& part,
                                                 bool bias) {
  const Window& window = problem.window();
  const bool reads_all = form.kind == Kind::kConv || form.kind == Kind::kStem;
  const int64_t in_channels = reads_all ? problem.input.channels : InputChannels(form, problem, part.channels);
  const auto source = Describe({part.images, in_channels, problem.input.height, problem.input.width},
                               form.kind == Kind::kStem ? Tag::nchw : Tag::nChw16c);
  const auto weights = Describe(WeightDims(form, problem, part.channels), WeightTag(form));
  const auto target = Describe({part.images, part.channels, problem.output.height, problem.output.width}, Tag::nChw16c);
  const memory::dims strides = {window.stride_h, window.stride_w};
  const memory::dims dilation = {window.dilation_h - 1, window.dilation_w - 1};
  const memory::dims pads_begin = {window.pad_top, window.pad_left};
  const memory::dims pads_end = {window.pad_bottom, window.pad_right};
  const dnnl::primitive_attr attributes = Attributes(problem.epilogue);
  const auto describe = [&](const auto&... tensors) {
    return DescribeConvolution(attributes, tensors..., strides, dilation, pads_begin, pads_end);
  };
  OnednnStream();
  return bias ? describe(source, weights, Describe({part.channels}, Tag::a), target)
              : describe(source, weights, target);
}

// One primitive, ready to run on the part of a layer that it was made for.
class PartConv {
 public:
  PartConv(const Form& form, const Problem& problem, const Part& part, bool bias)
      : PartConv(part, DescribePart(form, problem, part, bias)) {}

  const Part& part() const { return part_; }

  struct Buffers {
    const float* source;
    const float* weights;
    const float* bias;
    float* target;
    std::byte* scratchpad;
  };
  Status Run(const Buffers& buffers) const {
    return CallOnednn([&] {
      operands_.Execute(primitive_, std::array<const void*, 5>{buffers.source, buffers.weights, buffers.bias,
                                                               buffers.target, buffers.scratchpad});
    });
  }

 private:
  PartConv(const Part& part, const convolution_forward::primitive_desc& description)
      : part_(part),
        primitive_(description),
        operands_({{DNNL_ARG_SRC, description.src_desc()},
                   {DNNL_ARG_WEIGHTS, description.weights_desc()},
                   {DNNL_ARG_BIAS, description.bias_desc()},
                   {DNNL_ARG_DST, description.dst_desc()},
                   {DNNL_ARG_SCRATCHPAD, description.scratchpad_desc()}}) {}

  const Part part_;
  const convolution_forward primitive_;
  const OnednnOperands operands_;
};

struct FreeAligned {
  void operator()(float* data) const { std::free(data); }
};
using AlignedFloats = std::unique_ptr<float, FreeAligned>;

// A layer's weights in oneDNN's order.
memory::desc PackedWeights(const Form& form, const Problem& problem) {
  return Describe(WeightDims(form, problem, problem.output.channels), WeightTag(form));
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
  OnednnConv(const Form& form, const Problem& problem, std::shared_ptr<const BlockedWeights> weights, bool shared)
      : form_(form), shared_(shared), weights_(std::move(weights)) {
    const bool bias = !weights_->bias.empty();
    for (int64_t images : GroupSizes(problem)) {
      groups_.emplace_back(form, problem, Part{images, 0, problem.output.channels}, bias);
    }
    for (const Part& part : ChannelParts(form, problem)) {
      channel_parts_.emplace_back(form, problem, part, bias);
    }
  }

  const Form& form() const { return form_; }
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
    if (form_.kind == Kind::kStem) return image * problem.input.channels * problem.input.plane();
    const int64_t channels = Blocks(problem.input.channels) * kBlockChannels;
    const int64_t before = form_.kind == Kind::kConv ? 0 : InputChannels(form_, problem, first_channel);
    return (image * channels + before) * problem.input.plane();
  }

  const Form form_;
  const bool shared_;
  const std::shared_ptr<const BlockedWeights> weights_;
  std::deque<PartConv> groups_;         // all output channels, largest group of images first, one image last
  std::deque<PartConv> channel_parts_;  // one image each
};

// How many groups of whole blocks of channels there are, each of whose outputs reads its own inputs alone: as many as
// can be, perhaps one.
int64_t GroupsOf(const Weight& weight, const Problem& problem) {
  const int64_t inputs = problem.input.channels, outputs = problem.output.channels, taps = problem.window().taps();
  if (inputs % kBlockChannels != 0 || outputs % kBlockChannels != 0) return 1;
  struct Reach {
    int64_t first, last;  // input channels
  };
  std::vector<Reach> reaches(outputs, {0, -1});
  weight.matrix.ForEachRow([&](int64_t row, std::span<const uint32_t> cols) {
    if (!cols.empty()) reaches[row] = {cols.front() / taps, cols.back() / taps};
  });
  const auto are_apart = [&](int64_t groups) {
    for (int64_t row = 0; row < outputs; ++row) {
      const int64_t group = row / (outputs / groups);
      const auto [first, last] = reaches[row];
      if (last >= first && (first / (inputs / groups) != group || last / (inputs / groups) != group)) return false;
    }
    return true;
  };
  const int64_t most = std::gcd(inputs, outputs) / kBlockChannels;
  for (int64_t groups = most; groups > 1; --groups) {
    if (most % groups == 0 && are_apart(groups)) return groups;
  }
  return 1;
}

// Without the columns of other groups' inputs.
DenseMatrix WithinGroups(const DenseMatrix& matrix, int64_t groups) {
  DenseMatrix within{matrix.rows, matrix.cols / groups, {}};
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const auto first = matrix.values.begin() + row * matrix.cols + row / (matrix.rows / groups) * within.cols;
    within.values.insert(within.values.end(), first, first + within.cols);
  }
  return within;
}

// Throws what oneDNN does. REQUIRES: there is room for PackedWeights.
void PackWeights(const Form& form, const Weight& weight, const Problem& problem, float* values) {
  DenseMatrix matrix = weight.ToDense();
  if (form.groups > 1) matrix = WithinGroups(matrix, form.groups);
  const memory::dims dims = WeightDims(form, problem, problem.output.channels);
  const auto plain = Describe(dims, dims.size() == 5 ? Tag::goihw : Tag::oihw);
  memory from(plain, OnednnEngine(), matrix.values.data());
  memory to(PackedWeights(form, problem), OnednnEngine(), values);
  dnnl::stream& stream = OnednnStream();
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Form& form, const Weight& weight, const Problem& problem) {
  size_t bytes = 0;
  SWIZZLE_RETURN_IF_ERROR(CallOnednn([&] { bytes = PackedWeights(form, problem).get_size(); }));
  AlignedFloats values(static_cast<float*>(std::aligned_alloc(kBufferAlignment, RoundUp(bytes, kBufferAlignment))));
  if (values == nullptr) {
    return MakeError(StatusCode::kResourceExhausted, "cannot allocate ", bytes, " bytes for a convolution's weights");
  }
  std::unique_ptr<PackedWeight> conv;
  SWIZZLE_RETURN_IF_ERROR(MakeOnednn([&] {
    PackWeights(form, weight, problem, values.get());
    auto weights =
        std::make_shared<BlockedWeights>(BlockedWeights{weight.bias, bytes / sizeof(float), std::move(values)});
    conv = std::make_unique<OnednnConv>(form, problem, std::move(weights), /*shared=*/false);
  }));
  return conv;
}

size_t SlotBytes(size_t scratchpad_bytes) { return RoundUp(scratchpad_bytes, kBufferAlignment); }

// What no backend allocates: where oneDNN can't say how much it needs, having no memory left to find out, the plan ends
// in the RESOURCE_EXHAUSTED of its allocation.
constexpr size_t kImpossibleBytes = size_t{1} << 60;

// Enough for any primitive of the layer, with or without bias, for each thread. Throws what oneDNN does.
size_t DescribedWorkspace(const Form& form, const Problem& problem) {
  size_t bytes = 0;
  const auto reserve = [&](const Part& part) {
    bytes = std::max(bytes, DescribePart(form, problem, part, true).scratchpad_desc().get_size());
  };
  for (int64_t images : GroupSizes(problem)) reserve({images, 0, problem.output.channels});
  for (const Part& part : ChannelParts(form, problem)) reserve(part);
  return SlotBytes(bytes) * problem.threads;
}

size_t WorkspaceBytes(const Form& form, const Problem& problem) {
  size_t bytes = 0;
  const Status status = CallOnednn([&] { bytes = DescribedWorkspace(form, problem); });
  return status.ok() ? bytes : kImpossibleBytes;
}

// Whether oneDNN has generated code for the layer, rather than its reference loops, which take seconds.
bool IsOptimised(const Form& form, const Problem& problem) {
  bool optimised = false;
  const Status status = CallOnednn([&] {
    const Part whole{1, 0, problem.output.channels};
    optimised = std::string_view(DescribePart(form, problem, whole, true).impl_info_str()).starts_with("jit");
  });
  return status.ok() && optimised;
}

}  // namespace

bool AcceptsOnednnConv(const Problem& problem) {
  return EpilogueKeepsZero(problem) && IsOptimised({Kind::kConv}, problem);
}

bool AcceptsOnednnStem(const Problem& problem) {
  return EpilogueKeepsZero(problem) && problem.input.channels <= 4 && IsOptimised({Kind::kStem}, problem);
}

bool AcceptsOnednnDepthwise(const Problem& problem) {
  return EpilogueKeepsZero(problem) && IsOptimised({Kind::kDepthwise}, problem);
}

bool AcceptsOnednnGrouped(const Problem& problem) {
  const int64_t common = std::gcd(problem.input.channels, problem.output.channels);
  return EpilogueKeepsZero(problem) && common % kBlockChannels == 0 && common > kBlockChannels;
}

bool HoldsOnednnGroups(const Weight& weight, const Problem& problem) {
  const Form form{Kind::kGrouped, GroupsOf(weight, problem)};
  return form.groups > 1 && IsOptimised(form, problem) && WorkspaceBytes(form, problem) == 0;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnConv(const Weight& weight, const Problem& problem) {
  return Prepare({Kind::kConv}, weight, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnStem(const Weight& weight, const Problem& problem) {
  return Prepare({Kind::kStem}, weight, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnDepthwise(const Weight& weight, const Problem& problem) {
  return Prepare({Kind::kDepthwise}, weight, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnGrouped(const Weight& weight, const Problem& problem) {
  return Prepare({Kind::kGrouped, GroupsOf(weight, problem)}, weight, problem);
}

StatusOr<SharedWeight> OnednnConvForPlane(const SharedWeight& form, const Problem& problem) {
  const auto& conv = static_cast<const OnednnConv&>(*form);
  SharedWeight made;
  SWIZZLE_RETURN_IF_ERROR(
      MakeOnednn([&] { made = std::make_shared<OnednnConv>(conv.form(), problem, conv.weights(), /*shared=*/true); }));
  return made;
}

size_t OnednnConvWorkspaceBytes(const Problem& problem) { return WorkspaceBytes({Kind::kConv}, problem); }
size_t OnednnStemWorkspaceBytes(const Problem& problem) { return WorkspaceBytes({Kind::kStem}, problem); }
size_t OnednnDepthwiseWorkspaceBytes(const Problem& problem) { return WorkspaceBytes({Kind::kDepthwise}, problem); }

// Each thread takes an equal number of whole images; the images left over are shared by output channels. A thread alone
// takes those whole, too: calls for their parts take longer than one for all.
void RunOnednnConv(const KernelArgs& args, Stream& stream) {
  const auto& conv = static_cast<const OnednnConv&>(*args.weight);
  const int64_t batch = args.problem->input.batch;
  const int64_t threads = stream.threads();
  const int64_t images = batch / threads;
  const size_t slot_bytes = args.workspace.size() / threads / kBufferAlignment * kBufferAlignment;
  CpuStream& cpu_stream = CpuStream::From(stream);
  cpu_stream.ParallelRanges(threads, [&](int64_t slot, int64_t begin, int64_t end) {
    std::byte* scratchpad = args.workspace.data() + slot * slot_bytes;
    if (end - begin == threads) return cpu_stream.Keep(conv.RunImages(args, 0, batch, scratchpad));
    cpu_stream.Keep(conv.RunImages(args, begin * images, end * images, scratchpad));
    for (int64_t image = images * threads; image < batch; ++image) {
      const int64_t parts = conv.channel_parts();
      for (int64_t part = parts * begin / threads; part < parts * end / threads; ++part) {
        cpu_stream.Keep(conv.RunChannelPart(args, image, part, scratchpad));
      }
    }
  });
}

}  // namespace swizzle::cpu
