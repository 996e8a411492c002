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
  std::function<void(Rotation& rotation, Weight& table)> make;
  const char* message;
};

class RotaryFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(RotaryFaultTest, IsRefused) {
  Network network = testing::MakeRandomEncoder({.rotary = 40});
  EXPECT_THAT(network.Validate(), IsOk());
  for (Layer& layer : network.layers) {
    if (layer.op == Op::kRotary) GetParam().make(layer.rotation(), network.weights[layer.weight]);
  }
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

const Fault kFaults[] = {
    {"OfTooManyHeads", [](Rotation& rotation, Weight&) { rotation.heads = 3; },
     "its 3 heads of 12 channels do not fit [24,1,1] of each token"},
    {"OfNoHeads", [](Rotation& rotation, Weight&) { rotation.heads = 0; },
     "its 4 pairs are not within 0 heads of 12 channels"},
    {"OfTooManyPairs", [](Rotation& rotation, Weight&) { rotation.pairs = 7; },
     "its 7 pairs are not within 2 heads of 12 channels"},
    {"OfOtherPairs", [](Rotation& rotation, Weight&) { rotation.pairs = 6; },
     "its weight is [40,8] instead of [40,12]"},
    {"IsSparse", [](Rotation&, Weight& table) { table.matrix = CsrMatrix::FromDense(table.ToDense()); },
     "weights of Rotary are always dense"},
};

TEST(RotaryTableTest, HasARowForEachPositionOfAFixedLength) {
  EXPECT_THAT(testing::MakeRandomEncoder({.length = 40, .positions = 0, .rotary = 40}).Validate(), IsOk());
  EXPECT_THAT(testing::MakeRandomEncoder({.length = 41, .positions = 0, .rotary = 40}).Validate(),
              IsError(StatusCode::kInvalidArgument, "its sequences have 41 tokens, its tables rows for 40 positions"));
}

INSTANTIATE_TEST_SUITE_P(Faults, RotaryFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace swizzle
