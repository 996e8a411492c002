#include "kernels/cpu/int8/onednn_bytes.h"

#include <algorithm>
#include <dnnl.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/onednn_call.h"
#include "kernels/cpu/conv/onednn_versions.h"
#include "kernels/cpu/int8/conv_pieces.h"
#include "kernels/cpu/int8/position_sums.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cpu {
namespace {

using dnnl::convolution_forward;
using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

ConvPieces PiecesOf(const Problem& problem) { return CutIntoPieces(problem, HostCacheSizes()); }

// Whether oneDNN has to know the zero point, which taps outside the plane have. Elsewhere it is in ByteWeight::start,
// and oneDNN may take loops that know of none, which are faster.
bool PadsWithZeroPoint(const Problem& problem) {
  const Window& window = problem.window();
  return problem.inputs_as[0].zero_point != 0 &&
         (window.pad_top != 0 || window.pad_left != 0 || window.pad_bottom != 0 || window.pad_right != 0);
}

memory::dims WeightDims(const Problem& problem, int64_t channels) {
  return {channels, problem.input.channels, problem.window().kernel_h, problem.window().kernel_w};
}

// weights: as another call of the same part has them, or in the order that oneDNN likes best. Throws what oneDNN does.
convolution_forward::primitive_desc Describe(const Problem& problem, const BandShape& shape, int64_t channels,
                                             const std::optional<memory::desc>& weights) {
  const Window& window = problem.window();
  const bool of_tokens = shape.tokens > 0;
  const int64_t input_width = of_tokens ? 1 : problem.input.width;
  const int64_t output_width = of_tokens ? 1 : problem.output.width;
  const memory::desc source({1, problem.input.channels, shape.input_rows, input_width}, Type::u8, Tag::nhwc);
  const memory::desc target({1, channels, shape.output_rows, output_width}, Type::s32, Tag::nhwc);
  const memory::desc any(WeightDims(problem, channels), Type::s8, Tag::any);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (PadsWithZeroPoint(problem)) DescribeZeroPoint(problem.inputs_as[0].zero_point, attributes);
  const memory::dims strides = {window.stride_h, window.stride_w};
  const memory::dims dilation = {window.dilation_h - 1, window.dilation_w - 1};
  const memory::dims pads_begin = {shape.pad_top, window.pad_left}, pads_end = {shape.pad_bottom, window.pad_right};
  OnednnStream();
  return DescribeConvolution(attributes, source, weights.value_or(any), target, strides, dilation, pads_begin,
                             pads_end);
}

bool IsGenerated(const convolution_forward::primitive_desc& description) {
  const std::string_view name = description.impl_info_str();
  return name.starts_with("jit") || name.starts_with("brg");
}

// The channels of parts, each number once: those of the first, and of the last where it has fewer.
std::vector<int64_t> ChannelCounts(const Problem& problem, const ConvPieces& pieces) {
  const int64_t first = pieces.PartChannels(0, problem.output.channels);
  const int64_t last = pieces.PartChannels(pieces.parts - 1, problem.output.channels);
  return first == last ? std::vector{first} : std::vector{first, last};
}

// All calls of a layer: of each of the ChannelCounts, all shapes. orders: of the weights, where they are made already.
// Throws what oneDNN does.
std::vector<convolution_forward::primitive_desc> DescribeCalls(const Problem& problem, const ConvPieces& pieces,
                                                               std::span<const memory::desc> orders) {
  std::vector<convolution_forward::primitive_desc> calls;
  for (const int64_t channels : ChannelCounts(problem, pieces)) {
    std::optional<memory::desc> order;
    if (!orders.empty()) order = channels == pieces.part_channels ? orders.front() : orders.back();
    for (const BandShape& shape : pieces.shapes) {
      calls.push_back(Describe(problem, shape, channels, order));
      order = calls.back().weights_desc();
    }
  }
  return calls;
}

// One primitive, ready to run.
class SumsCall {
 public:
  // Throws what oneDNN does.
  explicit SumsCall(convolution_forward::primitive_desc description)
      : description_(std::move(description)), primitive_(description_) {}

  memory::desc weights() const { return description_.weights_desc(); }

  struct Buffers {
    const uint8_t* source;
    const void* weights;
    int32_t* sums;
    std::byte* scratchpad;
    const int32_t* zero_point;  // null where oneDNN need not know it
  };
  Status Run(const Buffers& buffers) const {
    return CallOnednn([&] {
      const auto tensor = [](const memory::desc& desc, const void* data) {
        return memory(desc, OnednnEngine(), const_cast<void*>(data));
      };
      dnnl::stream& stream = OnednnStream();
      OnednnArguments arguments = {{DNNL_ARG_SRC, tensor(description_.src_desc(), buffers.source)},
                                   {DNNL_ARG_WEIGHTS, tensor(description_.weights_desc(), buffers.weights)},
                                   {DNNL_ARG_DST, tensor(description_.dst_desc(), buffers.sums)},
                                   {DNNL_ARG_SCRATCHPAD, tensor(description_.scratchpad_desc(), buffers.scratchpad)}};
      if (buffers.zero_point != nullptr) AddZeroPoint(*buffers.zero_point, arguments);
      primitive_.execute(stream, arguments);
      stream.wait();
    });
  }

 private:
  const convolution_forward::primitive_desc description_;
  const convolution_forward primitive_;
};

// A layer's weights in oneDNN's order, some output channels after others.
struct WeightParts {
  std::vector<int32_t> start;
  std::vector<float> scale;
  std::vector<memory> parts;

  size_t bytes() const {
    size_t sum = start.size() * sizeof(int32_t) + scale.size() * sizeof(float);
    for (const memory& part : parts) sum += part.get_desc().get_size();
    return sum;
  }
};

// Of channels [first, first + channels). Throws what oneDNN does.
memory PackPart(const ByteWeight& weight, const Problem& problem, int64_t first, int64_t channels,
                const memory::desc& order) {
  const int64_t taps = problem.window().taps(), inputs = problem.input.channels;
  std::vector<int8_t> plain(channels * taps * inputs);
  for (int64_t row = 0; row < channels; ++row) {
    for (const ByteWeight::Entry& entry : weight.entries[first + row]) {
      const int64_t tap = entry.column / inputs, channel = entry.column % inputs;
      plain[(row * inputs + channel) * taps + tap] = entry.value;
    }
  }
  memory from({WeightDims(problem, channels), Type::s8, Tag::oihw}, OnednnEngine(), plain.data());
  memory to(order, OnednnEngine());
  dnnl::stream& stream = OnednnStream();
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return to;
}

// What each row's sum begins with that oneDNN doesn't add.
std::vector<int32_t> StartOf(const ByteWeight& weight, const Problem& problem) {
  std::vector<int32_t> start = weight.start;
  if (!PadsWithZeroPoint(problem)) return start;
  for (int64_t row = 0; row < weight.rows; ++row) {
    int32_t sum = 0;
    for (const ByteWeight::Entry& entry : weight.entries[row]) sum += entry.value;
    start[row] += sum * problem.inputs_as[0].zero_point;
  }
  return start;
}

// Of the sums of a piece, which stand first in a thread's part of the workspace; what oneDNN scribbles on follows.
size_t SumBytes(const Problem& problem, const ConvPieces& pieces) {
  int64_t positions = 0;
  for (const BandShape& shape : pieces.shapes) {
    positions = std::max(positions, shape.output_rows * (shape.tokens > 0 ? 1 : problem.output.width));
  }
  return RoundUp(positions * pieces.part_channels * sizeof(int32_t), kBufferAlignment);
}

class OnednnBytes final : public PackedWeight {
 public:
  // parts: null where they are still to be made; another one's else. Throws what oneDNN does.
  OnednnBytes(const Problem& problem, std::shared_ptr<const WeightParts> parts)
      : pieces_(PiecesOf(problem)),
        sum_bytes_(SumBytes(problem, pieces_)),
        shared_(parts != nullptr),
        parts_(std::move(parts)) {
    std::vector<memory::desc> orders;
    if (shared_) orders = {parts_->parts.front().get_desc(), parts_->parts.back().get_desc()};
    for (auto& description : DescribeCalls(problem, pieces_, orders)) calls_.emplace_back(std::move(description));
  }

  const std::shared_ptr<const WeightParts>& parts() const { return parts_; }
  const ConvPieces& pieces() const { return pieces_; }
  size_t bytes() const override {
    constexpr size_t kCode = size_t{1} << 15;  // of a primitive, about: oneDNN doesn't say
    return calls_.size() * kCode + (shared_ ? 0 : parts_->bytes());
  }

  // Throws what oneDNN does.
  void Pack(const ByteWeight& weight, const Problem& problem) {
    WeightParts made{StartOf(weight, problem), weight.scale, {}};
    for (int64_t part = 0; part < pieces_.parts; ++part) {
      const int64_t channels = pieces_.PartChannels(part, weight.rows);
      const memory::desc order = CallOf(part, channels, 0).weights();
      made.parts.push_back(PackPart(weight, problem, part * pieces_.part_channels, channels, order));
    }
    parts_ = std::make_shared<const WeightParts>(std::move(made));
  }

  // The sums of a piece, and what they end in. workspace: of a thread.
  Status RunPiece(const KernelArgs& args, const OutputSteps& steps, int64_t part, int64_t piece,
                  std::byte* workspace) const {
    if (pieces_.bands.empty()) return RunTokens(args, steps, part, piece, workspace);
    const Problem& problem = *args.problem;
    const int64_t image = piece / std::ssize(pieces_.bands);
    const Band& band = pieces_.bands[piece % std::ssize(pieces_.bands)];
    const Call call = {.part = part,
                       .shape = std::ranges::find(pieces_.shapes, band.shape) - pieces_.shapes.begin(),
                       .input_position = image * problem.input.plane() + band.first_input_row * problem.input.width,
                       .output_position = image * problem.output.plane() + band.first_output_row * problem.output.width,
                       .positions = band.shape.output_rows * problem.output.width};
    return RunCall(args, steps, call, workspace);
  }

 private:
  struct Call {
    int64_t part, shape;
    int64_t input_position, output_position;
    int64_t positions;  // of the output
  };

  Status RunTokens(const KernelArgs& args, const OutputSteps& steps, int64_t part, int64_t piece,
                   std::byte* workspace) const {
    const int64_t end = std::min((piece + 1) * ConvPieces::kTokens, args.problem->output.batch);
    int64_t shape = 0;
    for (int64_t token = piece * ConvPieces::kTokens; token < end; token += pieces_.shapes[shape].tokens) {
      while (pieces_.shapes[shape].tokens > end - token) ++shape;
      const Call call = {part, shape, token, token, pieces_.shapes[shape].tokens};
      SWIZZLE_RETURN_IF_ERROR(RunCall(args, steps, call, workspace));
    }
    return absl::OkStatus();
  }

  Status RunCall(const KernelArgs& args, const OutputSteps& steps, const Call& call, std::byte* workspace) const {
    const Problem& problem = *args.problem;
    const int64_t first = call.part * pieces_.part_channels;
    const int64_t channels = pieces_.PartChannels(call.part, problem.output.channels);
    const uint8_t* const source = args.Input<uint8_t>(0) + call.input_position * problem.input.channels;
    auto* const sums = reinterpret_cast<int32_t*>(workspace);
    const void* const weights = parts_->parts[call.part].get_data_handle();
    const int32_t zero_point = problem.inputs_as[0].zero_point;
    SWIZZLE_RETURN_IF_ERROR(
        CallOf(call.part, channels, call.shape)
            .Run({source, weights, sums, workspace + sum_bytes_, PadsWithZeroPoint(problem) ? &zero_point : nullptr}));
    const int64_t offset = call.output_position * problem.output.channels + first;
    const PositionSums made{.sums = sums,
                            .positions = call.positions,
                            .channels = channels,
                            .start = parts_->start.data() + first,
                            .scale = parts_->scale.data() + first,
                            .stride = problem.output.channels};
    if (problem.to.dtype == DType::kFloat32) {
      EndInReals(made, steps, args.Output<float>() + offset);
    } else {
      const auto* const residual = args.Residual<uint8_t>();
      EndInBytes(made, steps, residual == nullptr ? nullptr : residual + offset, args.Output<uint8_t>() + offset);
    }
    return absl::OkStatus();
  }

  const SumsCall& CallOf(int64_t part, int64_t channels, int64_t shape) const {
    const bool is_like_the_first = part == 0 || channels == pieces_.part_channels;
    return calls_[(is_like_the_first ? 0 : std::ssize(pieces_.shapes)) + shape];
  }

  const ConvPieces pieces_;
  const size_t sum_bytes_;
  const bool shared_;
  std::shared_ptr<const WeightParts> parts_;
  std::vector<SumsCall> calls_;  // see DescribeCalls
};

// What no backend allocates: see onednn_conv.cc.
constexpr size_t kImpossibleBytes = size_t{1} << 60;

bool KeepsEpilogue(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  if (epilogue.function) return false;
  return !epilogue.residual || (problem.to.dtype == DType::kUint8 && problem.inputs_as[1].dtype == DType::kUint8);
}

}  // namespace

bool AcceptsOnednnConvBytes(const Problem& problem) {
  return ReadsBytes(problem, Layout::kNhwc) && WritesBytes(problem, Layout::kNhwc) && KeepsEpilogue(problem) &&
         CanCutIntoPieces(problem);
}

bool AcceptsOnednnLinearBytes(const Problem& problem) {
  if (!ReadsBytes(problem, Layout::kNchw) || !problem.window().IsPointwise() || problem.input.plane() != 1)
    return false;
  if (!KeepsEpilogue(problem)) return false;
  return problem.to == Storage{Layout::kNchw, DType::kFloat32} || WritesBytes(problem, Layout::kNchw);
}

bool HoldsOnednnBytes(const Weight& weight, const Problem& problem) {
  constexpr int64_t kMostColumnsPerNonzero = 4;  // sparse rows then are as fast in ResNet-50's slowest layers for them
  if (weight.nonzeros() * kMostColumnsPerNonzero < weight.rows() * weight.cols() || !HoldsBytes(weight, problem))
    return false;
  bool generated = false;
  const Status status =
      CallOnednn([&] { generated = std::ranges::all_of(DescribeCalls(problem, PiecesOf(problem), {}), IsGenerated); });
  return status.ok() && generated;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnBytes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  std::unique_ptr<OnednnBytes> made;
  SWIZZLE_RETURN_IF_ERROR(MakeOnednn([&] {
    made = std::make_unique<OnednnBytes>(problem, nullptr);
    made->Pack(bytes, problem);
  }));
  return made;
}

StatusOr<SharedWeight> OnednnBytesForPlane(const SharedWeight& form, const Problem& problem) {
  const auto& of = static_cast<const OnednnBytes&>(*form);
  const ConvPieces pieces = PiecesOf(problem);
  if (pieces.part_channels != of.pieces().part_channels) return SharedWeight();
  SharedWeight made;
  const Status status = MakeOnednn([&] { made = std::make_shared<OnednnBytes>(problem, of.parts()); });
  if (status.code() == StatusCode::kUnimplemented) return SharedWeight();
  SWIZZLE_RETURN_IF_ERROR(status);
  return made;
}

size_t OnednnBytesWorkspace(const Problem& problem) {
  const ConvPieces pieces = PiecesOf(problem);
  size_t bytes = SumBytes(problem, pieces);
  const Status status = CallOnednn([&] {
    size_t scratchpad = 0;
    for (const auto& call : DescribeCalls(problem, pieces, {})) {
      scratchpad = std::max(scratchpad, call.scratchpad_desc().get_size());
    }
    bytes += RoundUp(scratchpad, kBufferAlignment);
  });
  return status.ok() ? bytes * problem.threads : kImpossibleBytes;
}

void RunOnednnBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const OnednnBytes&>(*args.weight);
  const OutputSteps steps = StepsOf(problem);
  const size_t slot_bytes = args.workspace.size() / problem.threads / kBufferAlignment * kBufferAlignment;
  const int64_t pieces = weight.pieces().Count(problem.output.batch);
  CpuStream& cpu_stream = CpuStream::From(stream);
  // Parts of the channels one after another: a thread's pieces then read the same weights.
  cpu_stream.ParallelRanges(pieces * weight.pieces().parts, [&](int64_t slot, int64_t begin, int64_t end) {
    std::byte* const workspace = args.workspace.data() + slot * slot_bytes;
    for (int64_t i = begin; i < end; ++i) {
      cpu_stream.Keep(weight.RunPiece(args, steps, i / pieces, i % pieces, workspace));
    }
  });
}

}  // namespace swizzle::cpu
