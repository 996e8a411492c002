// What differs between oneDNN 2, as Debian 12 has it, and 3. Throws what oneDNN does. Functions only, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_CONV_ONEDNN_VERSIONS_H_
#define SWIZZLE_KERNELS_CPU_CONV_ONEDNN_VERSIONS_H_

#include <cstdint>
#include <dnnl.hpp>
#include <unordered_map>

#include "kernels/cpu/conv/onednn_call.h"

namespace swizzle::cpu {

// What a primitive computes with, by DNNL_ARG.
using OnednnArguments = std::unordered_map<int, dnnl::memory>;

// A direct convolution for inference. tensors: source, weights, bias if there is one, target, strides, dilation,
// padding at the beginnings and at the ends.
template <typename... Tensors>
dnnl::convolution_forward::primitive_desc DescribeConvolution(const dnnl::primitive_attr& attributes,
                                                              const Tensors&... tensors) {
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {OnednnEngine(), kInference, kDirect, tensors..., attributes};
#else
  return {dnnl::convolution_forward::desc(kInference, kDirect, tensors...), attributes, OnednnEngine()};
#endif
}

inline void AppendEltwise(dnnl::algorithm function, float alpha, float beta, dnnl::post_ops& to) {
#if DNNL_VERSION_MAJOR >= 3
  to.append_eltwise(function, alpha, beta);
#else
  to.append_eltwise(1.0f, function, alpha, beta);
#endif
}

// The source's zero point, of all channels: told when a primitive is described before 3, and when it runs since.
inline void DescribeZeroPoint([[maybe_unused]] int32_t zero_point, dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  attributes.set_zero_points_mask(DNNL_ARG_SRC, 0);
#else
  attributes.set_zero_points(DNNL_ARG_SRC, 0, {zero_point});
#endif
}

// `zero_point` outlives the primitive's run.
inline void AddZeroPoint([[maybe_unused]] const int32_t& zero_point, [[maybe_unused]] OnednnArguments& to) {
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::memory::desc one({1}, dnnl::memory::data_type::s32, dnnl::memory::format_tag::a);
  to.emplace(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
             dnnl::memory(one, OnednnEngine(), const_cast<int32_t*>(&zero_point)));
#endif
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_ONEDNN_VERSIONS_H_
