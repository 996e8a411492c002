#include "model_loader/regions/device_attention.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using interpreter::Device;

float* FloatsOf(const Array& array) { return reinterpret_cast<float*>(array.data.get()); }

// How stacks of matrices are cut into products: sequences, and of each so many heads, whose matrices are evenly apart.
struct Cut {
  int64_t products = 1, batch = 1;
};

template <typename Float>
bool IsEven(const cpu::TokenView<Float>& view, int64_t heads) {
  return view.sequence_stride == heads * view.head_stride;
}

template <typename Float>
int64_t StrideOf(const cpu::TokenView<Float>& view, int64_t heads) {
  return heads == 1 ? view.sequence_stride : view.head_stride;
}

// Of products that read or write these views beside dense scores.
template <typename... Views>
Cut CutOf(int64_t sequences, int64_t heads, const Views&... views) {
  if (sequences == 1) return {1, heads};
  if (heads == 1 || (IsEven(views, heads) && ...)) return {1, sequences * heads};
  return {sequences, heads};
}

HeadsAttended CallOf(const cpu::ViewAttention& a, DType factors) {
  const auto view = [](const cpu::TokenView<const float>& from) {
    return HeadView{from.data, from.sequence_stride, from.head_stride, from.token_stride};
  };
  return {.factors = factors,
          .sequences = a.sequences,
          .heads = a.heads,
          .queries = a.query_count,
          .keys = a.key_count,
          .channels = a.channels,
          .value_channels = a.value_channels,
          .scale = a.scale,
          .query = view(a.queries),
          .key = view(a.keys),
          .value = view(a.values),
          .bias = view(a.bias),
          .bias_turns = a.bias_turns,
          .to = a.output.data,
          .to_sequence_stride = a.output.sequence_stride,
          .to_head_stride = a.output.head_stride,
          .to_token_stride = a.output.token_stride};
}

// The view as dense [sequences][heads][tokens][channels].
template <typename Float>
StatusOr<Array> Dense(Device& device, const cpu::ViewAttention& attention, const cpu::TokenView<Float>& view,
                      int64_t tokens, int64_t channels) {
  SWIZZLE_ASSIGN_OR_RETURN(
      Array dense, device.memory().Allocate(DType::kFloat32, {attention.sequences, attention.heads, tokens, channels}));
  device.functions().Copy({.rank = 4,
                           .dims = {attention.sequences, attention.heads, tokens, channels},
                           .from_strides = {view.sequence_stride, view.head_stride, view.token_stride, 1},
                           .to_strides = {attention.heads * tokens * channels, tokens * channels, channels, 1},
                           .from = view.data,
                           .to = dense.data.get()},
                          device.stream());
  return dense;
}

template <typename Float>
cpu::TokenView<Float> DenseView(Float* data, int64_t heads, int64_t tokens, int64_t channels) {
  return {data, heads * tokens * channels, tokens * channels, channels};
}

Status Attend(const cpu::ViewAttention& a, Device& device) {
  const DeviceFunctions& functions = device.functions();
  const int64_t scores_of_head = a.query_count * a.key_count;
  SWIZZLE_ASSIGN_OR_RETURN(const Array scores, device.memory().Allocate(DType::kFloat32, {a.sequences, a.heads,
                                                                                          a.query_count, a.key_count}));
  const Cut first = CutOf(a.sequences, a.heads, a.queries, a.keys);
  for (int64_t s = 0; s < first.products; ++s) {
    functions.Multiply(
        {.m = a.query_count,
         .n = a.key_count,
         .k = a.channels,
         .batch = first.batch,
         .a = {a.queries.data + s * a.queries.sequence_stride, a.queries.token_stride, 1, StrideOf(a.queries, a.heads)},
         .b = {a.keys.data + s * a.keys.sequence_stride, 1, a.keys.token_stride, StrideOf(a.keys, a.heads)},
         .to = FloatsOf(scores) + s * a.heads * scores_of_head,
         .to_row_stride = a.key_count,
         .to_batch_stride = scores_of_head},
        device.stream());
  }
  const int64_t turns = a.bias_turns > 0 ? a.bias_turns : a.sequences;
  for (int64_t turn = 0; turn < a.sequences; turn += turns) {
    float* const of_turns = FloatsOf(scores) + turn * a.heads * scores_of_head;
    functions.Softmax({.outer = turns,
                       .middle = a.heads,
                       .inner = a.query_count,
                       .length = a.key_count,
                       .scale = a.scale,
                       .from = of_turns,
                       .bias = a.bias.data,
                       .bias_strides = {a.bias.sequence_stride, a.bias.head_stride, a.bias.token_stride},
                       .to = of_turns},
                      device.stream());
  }
  const Cut second = CutOf(a.sequences, a.heads, a.values, a.output);
  for (int64_t s = 0; s < second.products; ++s) {
    functions.Multiply(
        {.m = a.query_count,
         .n = a.value_channels,
         .k = a.key_count,
         .batch = second.batch,
         .a = {FloatsOf(scores) + s * a.heads * scores_of_head, a.key_count, 1, scores_of_head},
         .b = {a.values.data + s * a.values.sequence_stride, a.values.token_stride, 1, StrideOf(a.values, a.heads)},
         .to = a.output.data + s * a.output.sequence_stride,
         .to_row_stride = a.output.token_stride,
         .to_batch_stride = StrideOf(a.output, a.heads)},
        device.stream());
  }
  return {};
}

}  // namespace

Status AttendOnDevice(const cpu::ViewAttention& attention, Device& device) {
  const HeadsAttended call = CallOf(attention, device.factors());
  if (call.factors != DType::kFloat32 && device.functions().Attends(call)) {
    device.functions().Attend(call, device.stream());
    return {};
  }
  constexpr int64_t kFewSequences = 4;  // from here on four copies take less than a product for each sequence
  const int64_t sequences = attention.sequences, heads = attention.heads;
  const bool even = IsEven(attention.queries, heads) && IsEven(attention.keys, heads) &&
                    IsEven(attention.values, heads) && IsEven(attention.output, heads);
  if (sequences <= kFewSequences || heads == 1 || even) return Attend(attention, device);
  cpu::ViewAttention dense = attention;
  SWIZZLE_ASSIGN_OR_RETURN(const Array queries,
                           Dense(device, attention, attention.queries, attention.query_count, attention.channels));
  SWIZZLE_ASSIGN_OR_RETURN(const Array keys,
                           Dense(device, attention, attention.keys, attention.key_count, attention.channels));
  SWIZZLE_ASSIGN_OR_RETURN(const Array values,
                           Dense(device, attention, attention.values, attention.key_count, attention.value_channels));
  const int64_t out_tokens = attention.query_count, out_channels = attention.value_channels;
  SWIZZLE_ASSIGN_OR_RETURN(const Array output,
                           device.memory().Allocate(DType::kFloat32, {sequences, heads, out_tokens, out_channels}));
  dense.queries = DenseView<const float>(FloatsOf(queries), heads, attention.query_count, attention.channels);
  dense.keys = DenseView<const float>(FloatsOf(keys), heads, attention.key_count, attention.channels);
  dense.values = DenseView<const float>(FloatsOf(values), heads, attention.key_count, out_channels);
  dense.output = DenseView<float>(FloatsOf(output), heads, out_tokens, out_channels);
  SWIZZLE_RETURN_IF_ERROR(Attend(dense, device));
  const cpu::TokenView<float>& to = attention.output;
  device.functions().Copy(
      {.rank = 4,
       .dims = {sequences, heads, out_tokens, out_channels},
       .from_strides = {heads * out_tokens * out_channels, out_tokens * out_channels, out_channels, 1},
       .to_strides = {to.sequence_stride, to.head_stride, to.token_stride, 1},
       .from = output.data.get(),
       .to = to.data},
      device.stream());
  return {};
}

}  // namespace swizzle::regions
