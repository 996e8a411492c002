// What Validate says of layers of token sequences whose weight does not go with what they are told.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/format/csr.h"
#include "model_loader/network/network.h"
#include "tests/support/random_encoder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::RandomEncoderOptions;

struct SequenceFault {
  const char* name;
  RandomEncoderOptions encoder;
  Op op;  // the layers that it is made in
  std::function<void(Operator& layer, Weight& weight)> make;
  const char* message;
};

class SequenceFaultTest : public ::testing::TestWithParam<SequenceFault> {};

TEST_P(SequenceFaultTest, IsRefused) {
  Network network = testing::MakeRandomEncoder(GetParam().encoder);
  EXPECT_THAT(network.Validate(), IsOk());
  for (Layer& layer : network.layers) {
    if (layer.op == GetParam().op) GetParam().make(layer, network.weights[layer.weight]);
  }
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

void MakeSparse(Operator&, Weight& weight) { weight.matrix = CsrMatrix::FromDense(weight.ToDense()); }

// Makes a number of the last row another one.
auto SetLeastDistance(size_t from_end, float number) {
  return [=](Operator&, Weight& weight) {
    DenseMatrix vectors = weight.ToDense();
    vectors.values[vectors.values.size() - from_end] = number;
    weight.matrix = std::move(vectors);
  };
}

// Makes one of the places that tokens are taken from another one.
auto SetPlace(float place) {
  return [=](Operator&, Weight& weight) {
    DenseMatrix places = weight.ToDense();
    places.values[5] = place;
    weight.matrix = std::move(places);
  };
}

const RandomEncoderOptions kBiased = {.reach = 3}, kRotary = {.rotary = 40}, kPlaced = {.places = 5},
                           kWindows = {.length = 12, .windows = 3};
constexpr char kNoDistances[] = "the last row of its weight is not of whole distances that rise, none above 1048576";

const SequenceFault kSequenceFaults[] = {
    {"BiasesOfOtherReach", kBiased, Op::kBiasedAttention, [](Operator& layer, Weight&) { layer.attention().reach = 4; },
     "its weight is [2,7] instead of [2,9]"},
    {"BiasesOfNegativeReach", kBiased, Op::kBiasedAttention,
     [](Operator& layer, Weight&) { layer.attention().reach = -1; }, "its reach -1 is negative"},
    {"BiasesOfAFixedLength", kBiased, Op::kBiasedAttention,
     [](Operator& layer, Weight&) { layer.attention().reach = 0, layer.attention().length = 3; },
     "its biases are of 3 tokens; sequences have any length"},
    {"BiasesOfTooGreatALength", kBiased, Op::kBiasedAttention,
     [](Operator& layer, Weight&) { layer.attention().length = int64_t{1} << 40; },
     "its biases are of 1099511627776 tokens and a reach of 3"},
    {"BiasesInNoWindows", kBiased, Op::kBiasedAttention,
     [](Operator& layer, Weight&) { layer.attention().windows = 0; }, "it has 0 windows of 0 tokens"},
    {"BiasesInWindowsByDistance", kBiased, Op::kBiasedAttention,
     [](Operator& layer, Weight&) { layer.attention().windows = 2; }, "it has 2 windows of 0 tokens"},
    {"BiasesInWindowsOfAnyLength", kBiased, Op::kBiasedAttention,
     [](Operator& layer, Weight&) {
       layer.attention().reach = 0, layer.attention().length = 3, layer.attention().windows = 2;
     },
     "its biases are of 2 windows of 3 tokens; sequences have any length"},
    {"OtherWindows", kWindows, Op::kBiasedAttention, [](Operator& layer, Weight&) { layer.attention().windows = 5; },
     "its biases are of 5 windows of 4 tokens; sequences have 12"},
    {"BiasesOfOtherWindows", kWindows, Op::kBiasedAttention,
     [](Operator& layer, Weight&) { layer.attention().windows = 4, layer.attention().length = 3; },
     "its weight is [2,48] instead of [2,36]"},
    {"PlaceBehindTheLast", kWindows, Op::kPermuteTokens, SetPlace(12.0f), "its place 12 is none of 12"},
    {"PlaceBeforeTheFirst", kWindows, Op::kPermuteTokens, SetPlace(-1.0f), "its place -1 is none of 12"},
    {"PlaceBetweenTwo", kWindows, Op::kPermuteTokens, SetPlace(2.5f), "its place 2.5 is none of 12 tokens"},
    {"PlacesOfFewerTokens", kWindows, Op::kPermuteTokens,
     [](Operator&, Weight& weight) {
       weight.matrix = DenseMatrix{6, 1, std::vector<float>(6)};
     },
     "its weight is [6,1] instead of [12,1]"},
    {"SparseBiases", kBiased, Op::kBiasedAttention, MakeSparse, "weights of BiasedAttention are always dense"},
    {"RotaryOfTooManyHeads", kRotary, Op::kRotary, [](Operator& layer, Weight&) { layer.rotation().heads = 3; },
     "its 3 heads of 12 channels do not fit [24,1,1] of each token"},
    {"RotaryOfNoHeads", kRotary, Op::kRotary, [](Operator& layer, Weight&) { layer.rotation().heads = 0; },
     "its 4 pairs are not within 0 heads of 12 channels"},
    {"RotaryOfTooManyPairs", kRotary, Op::kRotary, [](Operator& layer, Weight&) { layer.rotation().pairs = 7; },
     "its 7 pairs are not within 2 heads of 12 channels"},
    {"RotaryOfOtherPairs", kRotary, Op::kRotary, [](Operator& layer, Weight&) { layer.rotation().pairs = 6; },
     "its weight is [40,8] instead of [40,12]"},
    {"SparseRotary", kRotary, Op::kRotary, MakeSparse, "weights of Rotary are always dense"},
    {"OtherPlaces", kPlaced, Op::kDisentangledAttention, [](Operator& layer, Weight&) { layer.attention().places = 6; },
     "its weight is [49,5] instead of [49,6]"},
    {"NoPlaces", kPlaced, Op::kDisentangledAttention, [](Operator& layer, Weight&) { layer.attention().places = 0; },
     "it has 0 places"},
    {"PlacesThatDoNotRise", kPlaced, Op::kDisentangledAttention, SetLeastDistance(2, 2), kNoDistances},
    {"PlacesOfHalfADistance", kPlaced, Op::kDisentangledAttention, SetLeastDistance(1, 2.5f), kNoDistances},
    {"PlacesTooFar", kPlaced, Op::kDisentangledAttention, SetLeastDistance(1, 1e7f), kNoDistances},
    {"PlacesOfNoNumber", kPlaced, Op::kDisentangledAttention, SetLeastDistance(3, NAN), kNoDistances},
};

TEST(RotaryTableTest, HasARowForEachPositionOfAFixedLength) {
  EXPECT_THAT(testing::MakeRandomEncoder({.length = 40, .positions = 0, .rotary = 40}).Validate(), IsOk());
  EXPECT_THAT(testing::MakeRandomEncoder({.length = 41, .positions = 0, .rotary = 40}).Validate(),
              IsError(StatusCode::kInvalidArgument, "its sequences have 41 tokens, its tables rows for 40 positions"));
}

INSTANTIATE_TEST_SUITE_P(Faults, SequenceFaultTest, ::testing::ValuesIn(kSequenceFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace swizzle
