#include "model_loader/plan/fuse_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <ranges>
#include <vector>

#include "kernels/format/csr.h"
#include "model_loader/network/shared_weights.h"
#include "tests/support/network_builder.h"
#include "tests/support/network_reference.h"
#include "tests/support/random_encoder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::NetworkBuilder;

constexpr Function kGelu{FunctionKind::kGelu, 0, 0};

// The network between one input and some outputs.
Network WithPorts(NetworkBuilder& b, int input, const std::vector<int>& outputs) {
  const NetworkPort in = b.Port(input, "in");
  std::vector<NetworkPort> out;
  for (int value : outputs) out.push_back(b.Port(value, "out" + std::to_string(value)));
  Network network = b.Finish();
  network.inputs = {in};
  network.outputs = out;
  return network;
}

Network Fused(Network network) {
  FuseLayers(network);
  return network;
}

// Holds what a fused network computes to what the network computes, both in double precision.
void ExpectEqualResults(const Network& network, const Network& fused) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<float> input(3 * network.values[network.inputs[0].value].elements());
  for (float& value : input) value = uniform(random);
  const auto expected = testing::EvaluateNetwork(network, {input}, 3);
  const auto actual = testing::EvaluateNetwork(fused, {input}, 3);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size());
    for (size_t j = 0; j < actual[i].size(); ++j) ASSERT_NEAR(actual[i][j], expected[i][j], 1e-5) << i << " " << j;
  }
}

TEST(FuseLayersTest, AFunctionEndsTheLayerBefore) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 12, 5, 5);
  const int y = b.Conv(x, 8, testing::SquareWindow(1, 1, 0), 0.5, testing::kNoEpilogue);
  const int z = b.Function(b.Conv(y, 8, testing::SquareWindow(3, 1, 1), 0.5, testing::kRelu6, y), kGelu);
  const Network network = WithPorts(b, x, {b.Conv(z, 4, testing::SquareWindow(1, 1, 0), 0.0, testing::kRelu)});
  const Network fused = Fused(network);
  ASSERT_EQ(fused.layers.size(), 3u);
  EXPECT_EQ(fused.layers[1].epilogue.function, kGelu);
  EXPECT_EQ(fused.layers[1].output, z);
  EXPECT_EQ(fused.layers[2].epilogue.function, std::nullopt);
  ExpectEqualResults(network, fused);
  EXPECT_EQ(Fused(fused).layers.size(), 3u);
}

TEST(FuseLayersTest, AFunctionEndsADepthwiseLayerWhereAskedFor) {
  constexpr Function kSigmoid{FunctionKind::kSigmoid, 0, 0};
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 12, 5, 5);
  const Window window = testing::SquareWindow(3, 1, 1);
  const int y = b.Function(b.Depthwise(x, window, testing::kNoEpilogue), kGelu);
  const int clamped = b.Function(b.Depthwise(y, window, testing::kRelu6), kGelu);
  const int last = b.Function(b.Depthwise(clamped, window, testing::kNoEpilogue), kSigmoid);
  const Network network = WithPorts(b, x, {last});
  Network fused = Fused(network);
  EXPECT_EQ(fused.layers.size(), 6u);
  FuseHostFunctions(fused);
  ASSERT_EQ(fused.layers.size(), 5u) << "no clamped one, and none whose function makes something of zero";
  EXPECT_EQ(fused.layers[0].epilogue.function, kGelu);
  EXPECT_EQ(fused.layers[0].output, y);
  ExpectEqualResults(network, fused);
  FuseHostFunctions(fused);
  EXPECT_EQ(fused.layers.size(), 5u);
}

// A product of whole numbers takes the function where another reads it, and what is left of it only quantises.
TEST(FuseLayersTest, ARoundedFunctionEndsAProductOfWholeNumbers) {
  struct Case {
    double sparsity;
    bool whole_input, whole_reader;
  };
  const auto network_of = [](const Case& of) {
    NetworkBuilder b(1, 0);
    const int x = b.Value("x", 12), y = b.Linear(x, 8, of.sparsity), z = b.Function(y, kGelu);
    Network network = WithPorts(b, x, {b.Linear(z, 4, 0)});
    const Quantisation steps{DType::kUint8, {0.125f}, {128}};
    if (of.whole_input) network.values[x].quantisation = steps;
    network.values[z].quantisation = steps;
    network.layers[1].epilogue = {.low = -16.0f, .high = 15.875f};
    const auto round = [&](int layer) {
      Weight& weight = network.weights[network.layers[layer].weight];
      DenseMatrix rounded = weight.ToDense();
      for (float& value : rounded.values) value = value == 0 ? 0 : 0.5f;
      weight.bias.clear();
      weight.quantisation = Quantisation{DType::kInt8, {0.5f}, {}};
      weight.matrix = rounded;
      if (layer == 0 && of.sparsity > 0) weight.matrix = CsrMatrix::FromDense(rounded);
    };
    round(0);
    if (of.whole_reader) round(2);
    return network;
  };
  Network fused = Fused(network_of({0.9, true, true}));
  FuseHostFunctions(fused);
  ASSERT_EQ(fused.layers.size(), 3u);
  EXPECT_EQ(fused.layers[0].epilogue.function, kGelu);
  EXPECT_TRUE(fused.values[fused.layers[0].output].AsWholeNumbers());
  EXPECT_EQ(fused.layers[1].op, Op::kActivation);
  EXPECT_EQ(fused.layers[1].epilogue, (Epilogue{.low = -16.0f, .high = 15.875f}));
  for (const Case& of : {Case{0, true, true}, Case{0.5, true, true}, Case{0.9, false, true}, Case{0.9, true, false}}) {
    Network other = network_of(of);
    FuseHostFunctions(other);
    EXPECT_FALSE(other.layers[0].epilogue.function) << of.sparsity;
  }
}

// A depthwise layer of whole numbers takes the function behind what moves its values where that leaves as bytes.
TEST(FuseLayersTest, ARoundedFunctionEndsADepthwiseLayerBehindMoves) {
  const Quantisation steps{DType::kUint8, {0.125f}, {128}};
  const auto network_of = [&](bool whole_input, DType port) {
    NetworkBuilder b(1, 0);
    const int x = b.Value("x", 12, 5, 5);
    const int plane = b.Depthwise(x, testing::SquareWindow(3, 1, 1), testing::kNoEpilogue);
    const int tokens = b.Transpose(plane);
    const int y = b.Function(tokens, kGelu);
    Network network = WithPorts(b, x, {y});
    if (whole_input) network.values[x].quantisation = steps;
    network.values[y].quantisation = steps;
    network.layers.back().epilogue = {.low = -16.0f, .high = 15.875f};
    network.outputs[0].dtype = port;
    return network;
  };
  Network fused = Fused(network_of(true, DType::kUint8));
  FuseHostFunctions(fused);
  ASSERT_EQ(fused.layers.size(), 3u);
  EXPECT_EQ(fused.layers[0].epilogue.function, kGelu);
  for (const Layer& layer : fused.layers) EXPECT_EQ(fused.values[layer.output].quantisation, steps);
  EXPECT_EQ(fused.layers[2].op, Op::kActivation);
  for (Network other : {network_of(false, DType::kUint8), network_of(true, DType::kFloat32)}) {
    FuseHostFunctions(other);
    EXPECT_FALSE(other.layers[0].epilogue.function);
  }
}

TEST(FuseLayersTest, AFunctionStaysWhereItsInputIsReadElsewhere) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 12);
  const int y = b.Linear(x, 8, 0.5);
  const int z = b.Function(y, kGelu);
  const int first = b.Function(x, kGelu);
  const int last = b.Function(b.Pointwise(Op::kAdd, {y, z}), kGelu);
  const int seen = b.Linear(x, 8, 0.5);
  const Network network = WithPorts(b, x, {first, last, seen, b.Function(seen, kGelu)});
  const Network fused = Fused(network);
  EXPECT_EQ(fused.layers.size(), network.layers.size());
  ExpectEqualResults(network, fused);
}

TEST(FuseLayersTest, SlicesOfOneValueAreThatValueInAConcat) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 8, 3, 3), y = b.Pointwise(Op::kActivation, {x}, testing::kRelu);
  const int left = b.Slice(y, 0, 3), right = b.Slice(y, 3, 5), sum = b.Pointwise(Op::kAdd, {right, right});
  const int all = b.Concat({sum, left, right, x});
  const Network network = WithPorts(b, x, {all});
  const Network fused = Fused(network);
  ASSERT_EQ(fused.layers.size(), network.layers.size() - 1);  // `right` is read elsewhere
  EXPECT_EQ(fused.layers.back().inputs, (std::vector<int>{sum, y, x}));
  ExpectEqualResults(network, fused);
  EXPECT_EQ(Fused(fused).layers.size(), fused.layers.size());
}

TEST(FuseLayersTest, SlicesInAnotherOrderStay) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 8, 3, 3), left = b.Slice(x, 0, 3), right = b.Slice(x, 3, 5);
  const Network network =
      WithPorts(b, x, {b.Concat({right, left}), b.Concat({left, left, right}), b.Concat({left, x})});
  const Network fused = Fused(network);
  EXPECT_EQ(fused.layers[2].inputs, network.layers[2].inputs);
  EXPECT_EQ(fused.layers[3].inputs, (std::vector<int>{left, x}));
  EXPECT_EQ(fused.layers[4].inputs, network.layers[4].inputs);
  ExpectEqualResults(network, fused);
}

TEST(FuseLayersTest, AClampedFunctionStays) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 12);
  const int y = b.Function(b.Linear(x, 8, 0.5), kGelu);
  Network network = WithPorts(b, x, {y});
  network.layers.back().epilogue = testing::kRelu;
  EXPECT_EQ(Fused(network).layers.size(), 2u);
}

TEST(FuseLayersTest, AFunctionOfNoConvolutionStays) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 12);
  const int y = b.Function(b.Pointwise(Op::kAdd, {x, b.Linear(x, 12, 0.5)}), kGelu);
  EXPECT_EQ(Fused(WithPorts(b, x, {y})).layers.size(), 3u);
}

TEST(FuseLayersTest, OneFunctionIsFusedAndTheNextStays) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 12);
  const int y = b.Function(b.Function(b.Linear(x, 8, 0.5), kGelu), {FunctionKind::kTanh, 0, 0});
  const Network network = WithPorts(b, x, {y});
  const Network fused = Fused(network);
  ASSERT_EQ(fused.layers.size(), 2u);
  ExpectEqualResults(network, fused);
}

// An attention whose values have other channels than its keys, and whose keys' product stands first.
struct AttentionNetwork {
  explicit AttentionNetwork(double key_sparsity = 0.5) {
    NetworkBuilder b(1, 0);
    const int x = b.Value("x", 12);
    key = b.Linear(x, 8, key_sparsity);
    query = b.Linear(x, 8, 0.5);
    value = b.Linear(x, 6, 0.5);
    attended = b.Attention(query, key, value, 2, 0.5f);
    network = WithPorts(b, x, {attended});
  }

  Network network;
  int query, key, value, attended;
};

DenseMatrix MatrixOf(const Network& network, int layer) {
  return network.weights[network.layers[layer].weight].ToDense();
}

void ExpectStackedMatrices(const Network& network, const Network& fused) {
  std::vector<float> values, bias;
  for (int layer : {1, 0, 2}) {  // queries, keys, values
    const std::vector<float> more = MatrixOf(network, layer).values;
    values.insert(values.end(), more.begin(), more.end());
    std::vector<float> more_bias = network.weights[network.layers[layer].weight].bias;
    more_bias.resize(network.weights[network.layers[layer].weight].rows());
    bias.insert(bias.end(), more_bias.begin(), more_bias.end());
  }
  EXPECT_EQ(MatrixOf(fused, 0).values, values);
  EXPECT_EQ(fused.weights[fused.layers[0].weight].bias, bias);
}

// As in ALBERT, all of whose blocks have the same weights.
TEST(FuseLayersTest, AttentionsOfTheSameWeightsHaveOneProductsWeight) {
  NetworkBuilder b(1, 0);
  const int x = b.Value("x", 8);
  const auto attend = [&](int from) {
    const int key = b.Linear(from, 8, 0.5), query = b.Linear(from, 8, 0.5), value = b.Linear(from, 8, 0.5);
    return b.Attention(query, key, value, 2, 0.5f);
  };
  Network network = WithPorts(b, x, {attend(attend(x))});
  for (size_t i = 0; i < 3; ++i) network.layers[i + 4].weight = network.layers[i].weight;
  ShareWeights(network);
  ASSERT_EQ(network.weights.size(), 3u);
  const Network fused = Fused(network);
  ASSERT_EQ(fused.layers.size(), 4u);
  EXPECT_TRUE(fused.layers[1].attention().packed && fused.layers[3].attention().packed);
  EXPECT_EQ(fused.layers[0].weight, fused.layers[2].weight);
  ExpectStackedMatrices(network, fused);
}

TEST(FuseLayersTest, TheInputsOfAnAttentionBecomeOneProduct) {
  AttentionNetwork made;
  made.network.weights[made.network.layers[1].weight].bias.clear();
  const Network fused = Fused(made.network);
  ASSERT_EQ(fused.layers.size(), 2u);
  EXPECT_TRUE(fused.layers[1].attention().packed);
  EXPECT_EQ(fused.layers[1].inputs, std::vector<int>{fused.layers[0].output});
  EXPECT_EQ(fused.layers[1].output, made.attended);
  EXPECT_EQ(fused.values[fused.layers[0].output].channels, 22);
  EXPECT_EQ(fused.weights[fused.layers[0].weight].format(), Format::kCsr);
  ExpectStackedMatrices(made.network, fused);
  const Problem problem = LayerProblem(fused, fused.layers[1], 4, 1);
  EXPECT_EQ(InputCount(problem), 1);
  EXPECT_EQ(KeyChannels(problem), 8);
  EXPECT_EQ(Fused(fused).layers.size(), 2u);
  EXPECT_EQ(Fused(made.network).layers.size(), 2u);
}

// Queries and keys that are turned alike are turned together.
TEST(FuseLayersTest, TurnedInputsOfAnAttentionBecomeOneProduct) {
  const Network network = testing::MakeRandomEncoder({.rotary = 40});
  const Network fused = Fused(network);
  ASSERT_THAT(network.Validate(), testing::IsOk());
  EXPECT_EQ(fused.layers.size() + 3 + 2, network.layers.size());  // and two functions end layers
  const auto turned = std::ranges::find(fused.layers, Op::kRotary, &Layer::op);
  ASSERT_NE(turned, fused.layers.end());
  EXPECT_EQ(turned->rotation(), (Rotation{4, 12, 4}));
  EXPECT_EQ(fused.values[turned->output].channels, 72);
  EXPECT_EQ((turned + 1)->op, Op::kAttention);
  EXPECT_TRUE((turned + 1)->attention().packed);
  EXPECT_EQ((turned + 1)->inputs, std::vector<int>{turned->output});
}

// Heads of keys and values that those of queries share are fewer rows of the product.
TEST(FuseLayersTest, SharedInputsOfAnAttentionBecomeOneProduct) {
  const Network network = testing::MakeRandomEncoder({.group_size = 2, .rotary = 40});
  ASSERT_THAT(network.Validate(), testing::IsOk());
  const Network fused = Fused(network);
  const auto turned = std::ranges::find(fused.layers, Op::kRotary, &Layer::op);
  ASSERT_NE(turned, fused.layers.end());
  EXPECT_EQ(turned->rotation(), (Rotation{3, 12, 4}));
  EXPECT_EQ((turned + 1)->inputs, std::vector<int>{turned->output});
  const Problem problem = LayerProblem(fused, *(turned + 1), 4, 1);
  EXPECT_EQ(problem.input.channels, 48);
  EXPECT_EQ(QueryChannels(problem), 24);
  EXPECT_EQ(KeyChannels(problem), 12);
  EXPECT_EQ(ValueChannels(problem), 12);
}

TEST(FuseLayersTest, InputsThatAreTurnedByTwoTablesStay) {
  Network network = testing::MakeRandomEncoder({.rotary = 40});
  Layer& keys = *std::ranges::find(network.layers | std::views::reverse, Op::kRotary, &Layer::op);
  network.weights.push_back(network.weights[keys.weight]);
  keys.weight = static_cast<int>(network.weights.size()) - 1;
  for (const Layer& layer : Fused(network).layers) EXPECT_FALSE(IsAttention(layer.op) && layer.attention().packed);
}

TEST(FuseLayersTest, DenseInputsOfAnAttentionBecomeOneProduct) {
  AttentionNetwork made;
  for (Weight& weight : made.network.weights) weight.matrix = weight.ToDense();
  const Network fused = Fused(made.network);
  ASSERT_EQ(fused.layers.size(), 2u);
  ExpectStackedMatrices(made.network, fused);
}

// Near half of zeros it is chance which format a matrix is kept in.
TEST(FuseLayersTest, InputsOfAnAttentionOfLikeSharesBecomeOneProduct) {
  AttentionNetwork made;
  Weight& keys = made.network.weights[made.network.layers[0].weight];
  keys.matrix = keys.ToDense();
  const Network fused = Fused(made.network);
  ASSERT_EQ(fused.layers.size(), 2u);
  EXPECT_EQ(fused.weights[fused.layers[0].weight].format(), Format::kCsr);
  ExpectStackedMatrices(made.network, fused);
  keys.matrix = DenseMatrix{8, 12, std::vector<float>(96, 0.25f)};
  EXPECT_EQ(Fused(made.network).layers.size(), 4u);
}

TEST(FuseLayersTest, InputsOfAnAttentionThatDifferStay) {
  EXPECT_EQ(Fused(AttentionNetwork(0.0).network).layers.size(), 4u);  // one dense, two sparse
  AttentionNetwork clamped;
  clamped.network.layers[2].epilogue = testing::kRelu;
  EXPECT_EQ(Fused(clamped.network).layers.size(), 4u);
  AttentionNetwork elsewhere;
  elsewhere.network.layers[2].inputs = {elsewhere.key};
  EXPECT_EQ(Fused(elsewhere.network).layers.size(), 4u);
  AttentionNetwork seen;
  NetworkPort port = seen.network.outputs[0];
  port.value = seen.value;
  seen.network.outputs.push_back(port);
  EXPECT_EQ(Fused(seen.network).layers.size(), 4u);
}

}  // namespace
}  // namespace swizzle
