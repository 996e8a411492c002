#include "model_loader/network/join_planes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/network_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::NetworkBuilder;

constexpr int64_t kChannels = 8, kLength = 5;

// Planes [8, 2, 2] of images [3, 4, 4].
Network Stem() {
  NetworkBuilder builder(1, 0);
  const int image = builder.Value("image", 3, 4, 4);
  const int planes = builder.Conv(image, kChannels, testing::SquareWindow(2, 2, 0), 0.5, testing::kNoEpilogue);
  const NetworkPort input = builder.Port(image, "image"), output = builder.Port(planes, "planes");
  Network network = builder.Finish();
  network.inputs = {input};
  network.outputs = {output};
  return network;
}

// A linear layer of tokens and their positions.
Network Encoder(bool twice = false) {
  NetworkBuilder builder(2, 0);
  const int tokens = builder.Value("tokens", kChannels);
  const int positions = builder.Embedding(-1, 9, kChannels, 2);
  const int sum = builder.Pointwise(Op::kAdd, {tokens, positions});
  const int linear = builder.Linear(sum, kChannels, 0.5);
  const int made = twice ? builder.Pointwise(Op::kAdd, {linear, tokens}) : linear;
  Network network = builder.Finish();
  for (NetworkValue& value : network.values) value.per_token = true;
  network.sequences = SequenceInputs{.length = kLength};
  network.inputs = {{"tokens", DType::kFloat32, {kLength, kChannels}, tokens}};
  network.outputs = {{"y", DType::kFloat32, {kLength, kChannels}, made}};
  return network;
}

DenseMatrix Added() { return {kLength, kChannels, std::vector<float>(kLength * kChannels, 0.5f)}; }

int64_t CountOf(const Network& network, Op op) { return std::ranges::count(network.layers, op, &Layer::op); }

Layer& MakerOfTokens(Network& network) { return *std::ranges::find(network.layers, Op::kPlaneTokens, &Layer::op); }

TEST(JoinPlanesTest, PositionsBecomeWhatIsAdded) {
  const Network encoder = Encoder();
  const auto& table = std::ranges::find(encoder.layers, Op::kEmbedding, &Layer::op);
  const DenseMatrix rows = encoder.weights[table->weight].ToDense();
  Network joined = JoinPlanes(Stem(), encoder, 0, Added());
  ASSERT_THAT(joined.Validate(), IsOk());
  EXPECT_EQ(joined.layers.size(), 3u);
  EXPECT_EQ(CountOf(joined, Op::kEmbedding), 0);
  EXPECT_EQ(joined.inputs.size(), 1u);
  EXPECT_EQ(joined.inputs[0].name, "image");
  EXPECT_EQ(joined.weights.size(), 3u) << "the table of positions is gone";
  const DenseMatrix added = joined.weights[MakerOfTokens(joined).weight].ToDense();
  for (size_t i = 0; i < added.values.size(); ++i) EXPECT_EQ(added.values[i], 0.5f + rows.values[2 * kChannels + i]);
}

TEST(JoinPlanesTest, PositionsStayWhereTokensAreReadWithoutThem) {
  Network joined = JoinPlanes(Stem(), Encoder(/*twice=*/true), 0, Added());
  ASSERT_THAT(joined.Validate(), IsOk());
  EXPECT_EQ(CountOf(joined, Op::kEmbedding), 1);
  EXPECT_EQ(joined.weights[MakerOfTokens(joined).weight].ToDense().values, Added().values);
}

TEST(JoinPlanesTest, TokensOfPlanesAreValidated) {
  struct Fault {
    void (*make)(Network&);
    std::string message;
  };
  const Fault faults[] = {
      {[](Network& network) { network.values[network.layers[0].output].channels = 9; }, "instead of [9,12]"},
      {[](Network& network) { network.sequences->length = 3; }, "its plane has 4 positions; sequences have 3"},
      {[](Network& network) { network.sequences->length = 0; }, "its plane has 4 positions; sequences have any length"},
      {[](Network& network) { network.sequences->length = 6; }, "its weight is [5,8] instead of [6,8]"},
      {[](Network& network) { network.values[MakerOfTokens(network).output].per_token = false; }, "makes no tokens"},
      {[](Network& network) {
         network.inputs.push_back({"mask", DType::kInt64, {kLength}, -1});
         network.sequences->mask = 1;
       },
       "it makes tokens of planes, which go with no mask"},
  };
  for (const Fault& fault : faults) {
    Network joined = JoinPlanes(Stem(), Encoder(), 0, Added());
    fault.make(joined);
    EXPECT_THAT(joined.Validate(), IsError(StatusCode::kInvalidArgument, fault.message));
  }
}

}  // namespace
}  // namespace swizzle
