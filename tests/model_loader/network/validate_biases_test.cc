#include <cstdint>
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "kernels/format/csr.h"
#include "model_loader/network/network.h"
#include "tests/support/random_encoder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;

struct Fault {
  const char* name;
  std::function<void(Attention& attention, Weight& biases)> make;
  const char* message;
};

class BiasFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(BiasFaultTest, IsRefused) {
  Network network = testing::MakeRandomEncoder({.reach = 3});
  EXPECT_THAT(network.Validate(), IsOk());
  for (Layer& layer : network.layers) {
    if (layer.op == Op::kBiasedAttention) GetParam().make(layer.attention(), network.weights[layer.weight]);
  }
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

const Fault kFaults[] = {
    {"OfOtherReach", [](Attention& attention, Weight&) { attention.reach = 4; },
     "its weight is [2,7] instead of [2,9]"},
    {"NegativeReach", [](Attention& attention, Weight&) { attention.reach = -1; }, "its reach -1 is negative"},
    {"OfAFixedLength", [](Attention& attention, Weight&) { attention.reach = 0, attention.length = 3; },
     "its biases are of 3 tokens; sequences have any length"},
    {"OfTooGreatALength", [](Attention& attention, Weight&) { attention.length = int64_t{1} << 40; },
     "its biases are of 1099511627776 tokens and a reach of 3"},
    {"IsSparse", [](Attention&, Weight& biases) { biases.matrix = CsrMatrix::FromDense(biases.ToDense()); },
     "weights of BiasedAttention are always dense"},
};

INSTANTIATE_TEST_SUITE_P(Faults, BiasFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace swizzle
