#include "kernels/cpu/conv/onednn_operands.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <dnnl.hpp>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/cpu/conv/onednn_call.h"

namespace swizzle::cpu {
namespace {

using dnnl::memory;

TEST(OnednnOperands, EachCallHasItsOwnMemory) {
  const memory::dims dims = {2, 3};
  const memory::desc rows(dims, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc columns(dims, memory::data_type::f32, memory::format_tag::ba);
  OnednnStream();
  const dnnl::reorder turn(dnnl::reorder::primitive_desc(OnednnEngine(), rows, OnednnEngine(), columns));
  const OnednnOperands operands({{DNNL_ARG_FROM, rows}, {DNNL_ARG_BIAS, memory::desc()}, {DNNL_ARG_TO, columns}});
  std::atomic<int> right = 0;
  const auto call_often = [&](int thread) {
    for (int call = 0; call < 100; ++call) {
      std::array<float, 6> from, to = {};
      std::iota(from.begin(), from.end(), static_cast<float>(1000 * thread + call));
      operands.Execute(turn, std::array<const void*, 3>{from.data(), nullptr, to.data()});
      right += to == std::array{from[0], from[3], from[1], from[4], from[2], from[5]} ? 1 : 0;
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(call_often, thread);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

}  // namespace
}  // namespace swizzle::cpu
