#include <cmath>
#include <functional>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/format/attention_pattern.h"
#include "kernels/format/csr.h"
#include "model_loader/network/network.h"
#include "tests/support/random_detector.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::MakeRandomNetwork;

Layer& FirstOf(Network& network, Op op) {
  for (Layer& layer : network.layers) {
    if (layer.op == op) return layer;
  }
  SWIZZLE_CHECK(false);
  return network.layers[0];
}

Weight& WeightOf(Network& network, Op op) { return network.weights[FirstOf(network, op).weight]; }

template <typename M>
void Edit(Weight& weight, const std::function<void(M&)>& edit) {
  M matrix = *weight.matrix.As<M>();
  edit(matrix);
  weight.matrix = std::move(matrix);
}

void EditFirstCsr(Network& network, const std::function<void(CsrMatrix&)>& edit) {
  for (Weight& weight : network.weights) {
    if (weight.format() == Format::kCsr) return Edit(weight, edit);
  }
  FAIL() << "no weight is sparse";
}

TEST(ValidateTest, AcceptsFreeAndFixedBatch) {
  EXPECT_THAT(MakeRandomNetwork({}).Validate(), IsOk());
  testing::RandomNetworkOptions fixed;
  fixed.batch_size = 3;
  EXPECT_THAT(MakeRandomNetwork(fixed).Validate(), IsOk());
}

TEST(ValidateTest, AcceptsTokenSequences) {
  EXPECT_THAT(testing::MakeRandomEncoder({}).Validate(), IsOk());
  EXPECT_THAT(testing::MakeRandomEncoder({.batch_size = 3}).Validate(), IsOk());
  EXPECT_THAT(testing::MakeRandomEncoder({.group_size = 2}).Validate(), IsOk());
  EXPECT_THAT(testing::MakeRandomEncoder({.batch_size = 3, .length = 7}).Validate(), IsOk());
}

struct Fault {
  const char* name;
  std::function<void(Network&)> make;
  const char* message;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class NetworkFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(NetworkFaultTest, IsRefused) {
  Network network = MakeRandomNetwork({});
  GetParam().make(network);
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

const Fault kFaults[] = {
    {"NegativeBatch", [](Network& n) { n.batch_size = -1; }, "batch size -1"},
    {"HugeBatch", [](Network& n) { n.batch_size = int64_t{1} << 40; }, "batch size"},
    {"EmptyExtent", [](Network& n) { n.values[1].height = 0; }, "has extent"},
    {"HugeExtent", [](Network& n) { n.values[1].channels = n.values[1].height = 1 << 20; }, "has extent"},
    {"ScalesOfOtherChannels",
     [](Network& n) {
       n.values[1].quantisation = Quantisation{DType::kInt8, {1.0f, 2.0f}, {}};
     },
     "2 scales"},
    {"WeightOfOtherScales",
     [](Network& n) {
       n.weights[0].quantisation = Quantisation{DType::kInt8, {-1.0f}, {}};
     },
     "its scale -1"},
    {"RequantisesByItself",
     [](Network& n) {
       n.layers[0].epilogue.requantise = Quantised{DType::kInt8, 1.0f, 0};
     },
     "the value's to say"},
    {"NoInputs", [](Network& n) { n.inputs.clear(); }, "no input"},
    {"NoOutputs", [](Network& n) { n.outputs.clear(); }, "no output"},
    {"UnnamedInput", [](Network& n) { n.inputs[0].name.clear(); }, "has no name"},
    {"SameInputTwice", [](Network& n) { n.inputs.push_back(n.inputs[0]); }, "its name is used twice"},
    {"SameInputValueTwice",
     [](Network& n) {
       n.inputs.push_back(n.inputs[0]);
       n.inputs[1].name = "other";
     },
     "another input has the same value"},
    {"SameOutputTwice", [](Network& n) { n.outputs.push_back(n.outputs[0]); }, "its name is used twice"},
    {"PortWithoutValue", [](Network& n) { n.outputs[0].value = 1000; }, "names value 1000"},
    {"PortOfOtherType", [](Network& n) { n.inputs[0].dtype = DType::kInt64; }, "INT64"},
    {"PortOfOtherSize",
     [](Network& n) {
       n.inputs[0].dims = {3, 14, 13};
     },
     "other elements than its value"},
    {"PortWithFreeDimension",
     [](Network& n) {
       n.inputs[0].dims = {3, 14, -1};
     },
     "image"},
    {"PortWithoutBatch", [](Network& n) { n.batch_size = 2; }, "do not start with the batch size 2"},
    {"OutputIsInput",
     [](Network& n) {
       n.outputs[0].value = n.inputs[0].value;
       n.outputs[0].dims = n.inputs[0].dims;
     },
     "is the input 'image'"},
    {"UnknownKind", [](Network& n) { n.layers[0].op = static_cast<Op>(99); }, "operator 99"},
    {"ConvertsLayouts", [](Network& n) { FirstOf(n, Op::kAdd).op = Op::kConvertLayout; }, "is none that a network has"},
    {"MissingInput", [](Network& n) { n.layers[0].inputs.clear(); }, "0 inputs instead of 1"},
    {"SpareInput", [](Network& n) { n.layers[0].inputs.push_back(0); }, "2 inputs instead of 1"},
    {"InputOutOfRange", [](Network& n) { n.layers[0].inputs[0] = -1; }, "reads value -1"},
    {"InputBeforeMade", [](Network& n) { n.layers[0].inputs[0] = n.layers[3].output; }, "before it is made"},
    {"OutputOutOfRange", [](Network& n) { n.layers[0].output = 1000; }, "makes value 1000"},
    {"OutputMadeTwice", [](Network& n) { n.layers[1].output = n.layers[0].output; }, "a second time"},
    {"ValueMadeByNothing",
     [](Network& n) {
       n.values.push_back({"spare", 1, 1, 1});
     },
     "('spare') is made by no layer"},
    {"WeightOfNothing", [](Network& n) { n.weights.push_back(n.weights[0]); }, "belongs to no layer"},
    {"WeightOutOfRange", [](Network& n) { n.layers[0].weight = 1000; }, "names weight 1000"},
    {"WeightMissing", [](Network& n) { n.layers[0].weight = -1; }, "names weight -1"},
    {"WeightOfAdd", [](Network& n) { FirstOf(n, Op::kAdd).weight = 0; }, "Add has no weight"},
    {"WeightRows",
     [](Network& n) {
       Edit<DenseMatrix>(WeightOf(n, Op::kConv), [](DenseMatrix& dense) {
         dense.rows += 1;
         dense.values.resize(dense.rows * dense.cols);
       });
       WeightOf(n, Op::kConv).bias.clear();
     },
     "its weight is [17,27] instead of [16,27]"},
    {"WeightValues",
     [](Network& n) { Edit<DenseMatrix>(WeightOf(n, Op::kConv), [](DenseMatrix& dense) { dense.values.pop_back(); }); },
     "layer 0"},
    {"BiasLength", [](Network& n) { n.weights[0].bias.pop_back(); }, "its bias has 15 elements"},
    {"CsrOutOfRange", [](Network& n) { EditFirstCsr(n, [](CsrMatrix& csr) { csr.col_indices.back() = 1000; }); },
     "layer 1"},
    {"CsrUnsorted",
     [](Network& n) {
       EditFirstCsr(n, [](CsrMatrix& csr) {
         int64_t row = 0;
         while (csr.row_offsets[row + 1] - csr.row_offsets[row] < 2) ++row;
         std::swap(csr.col_indices[csr.row_offsets[row]], csr.col_indices[csr.row_offsets[row] + 1]);
       });
     },
     "layer 1"},
    {"CsrCount", [](Network& n) { EditFirstCsr(n, [](CsrMatrix& csr) { csr.row_offsets.back() += 1; }); }, "layer 1"},
    {"CsrDepthwise",
     [](Network& n) {
       Weight& weight = WeightOf(n, Op::kDepthwiseConv);
       weight.matrix = CsrMatrix::FromDense(weight.ToDense());
     },
     "always dense"},
    {"CrossedBounds",
     [](Network& n) {
       n.layers[0].epilogue.low = 1;
       n.layers[0].epilogue.high = 0;
     },
     "[1, 0]"},
    {"BoundIsNotANumber", [](Network& n) { n.layers[0].epilogue.low = std::numeric_limits<float>::quiet_NaN(); },
     "clamps"},
    {"SoftmaxClamps", [](Network& n) { FirstOf(n, Op::kSoftmax).epilogue.low = 0; }, "Softmax cannot clamp"},
    {"ReshapeClamps", [](Network& n) { FirstOf(n, Op::kReshape).epilogue.high = 0; }, "Reshape cannot clamp"},
    {"PoolWithResidual",
     [](Network& n) {
       Layer& pool = FirstOf(n, Op::kMaxPool);
       pool.epilogue.residual = true;
       pool.inputs.push_back(pool.inputs[0]);
     },
     "adds no residual"},
    {"ResidualOfOtherExtent",
     [](Network& n) {
       for (Layer& layer : n.layers) {
         if (layer.epilogue.residual) layer.inputs[1] = n.inputs[0].value;
       }
     },
     "differs from its input"},
    {"KernelZero", [](Network& n) { n.layers[0].window().kernel_h = 0; }, "below 1"},
    {"StrideZero", [](Network& n) { n.layers[0].window().stride_w = 0; }, "below 1"},
    {"DilationZero", [](Network& n) { n.layers[0].window().dilation_w = 0; }, "below 1"},
    {"PadNegative", [](Network& n) { n.layers[0].window().pad_top = -1; }, "negative pad"},
    {"PadHuge", [](Network& n) { n.layers[0].window().pad_top = 1 << 30; }, "one above"},
    {"PlaneDoesNotFollow", [](Network& n) { n.layers[0].window().stride_h = 1; }, "gives a plane of [14,7]"},
    {"WindowDoesNotFit", [](Network& n) { n.layers[0].window().kernel_h = 100; }, "gives a plane of [0,7]"},
    {"ChannelsChange", [](Network& n) { n.values[FirstOf(n, Op::kMaxPool).output].channels += 1; }, "other channels"},
    {"ActivationExtent", [](Network& n) { n.values[FirstOf(n, Op::kActivation).output].width += 1; },
     "differs from its input"},
    {"FunctionUnknown", [](Network& n) { FirstOf(n, Op::kFunction).function().kind = static_cast<FunctionKind>(99); },
     "its function 99 is not known"},
    {"FunctionNotFinite",
     [](Network& n) { FirstOf(n, Op::kFunction).function().beta = std::numeric_limits<float>::infinity(); },
     "is not finite"},
    {"FunctionOfAdd", [](Network& n) { FirstOf(n, Op::kAdd).attributes = Function(); },
     "Add has attributes of another operator"},
    {"FactorsExtent",
     [](Network& n) {
       Layer& scale = FirstOf(n, Op::kScale);
       scale.inputs[1] = scale.inputs[0];
     },
     "differs from its input"},
    {"FactorsMissing", [](Network& n) { FirstOf(n, Op::kScale).inputs.pop_back(); }, "1 inputs instead of 2"},
    {"MultiplyExtent", [](Network& n) { FirstOf(n, Op::kMultiply).inputs[1] = n.layers[0].output; },
     "differs from its input"},
    {"TransposeExtent", [](Network& n) { n.values[FirstOf(n, Op::kTranspose).output].width += 1; },
     "is not the transpose of its input"},
    {"TransposeClamps", [](Network& n) { FirstOf(n, Op::kTranspose).epilogue.high = 0; }, "Transpose cannot clamp"},
    {"ReshapeElements", [](Network& n) { n.values[FirstOf(n, Op::kReshape).output].channels += 1; },
     "other elements than its input"},
};

class DetectorFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(DetectorFaultTest, IsRefused) {
  Network network = testing::MakeRandomDetector();
  GetParam().make(network);
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

const Fault kDetectorFaults[] = {
    {"PartTooMany", [](Network& n) { FirstOf(n, Op::kConcat).parts().count = 4; }, "its part 3 is of 0"},
    {"NoParts", [](Network& n) { FirstOf(n, Op::kConcat).parts() = {}; }, "it has 0 parts"},
    {"TooManyParts", [](Network& n) { FirstOf(n, Op::kConcat).parts().count = 9; }, "it has 9 parts"},
    {"PartOfNothing", [](Network& n) { FirstOf(n, Op::kConcat).parts().sizes[1] = 0; }, "its part 1 is of 0"},
    {"PartBehindTheLast", [](Network& n) { FirstOf(n, Op::kConcat).parts().sizes[3] = 8; }, "its part 3 is of 8"},
    {"PartOfOtherChannels", [](Network& n) { FirstOf(n, Op::kConcat).parts().sizes[1] = 17; }, "does not hold"},
    {"PartsOfOtherSum", [](Network& n) { n.values[FirstOf(n, Op::kConcat).output].channels = 57; },
     "its parts are 56 together"},
    {"PlanesAsChannels", [](Network& n) { FirstOf(n, Op::kConcat).parts().of_planes = true; }, "does not hold"},
    {"OperandMissing", [](Network& n) { FirstOf(n, Op::kConcat).inputs.pop_back(); }, "2 inputs instead of 3"},
    {"ConcatClamps", [](Network& n) { FirstOf(n, Op::kConcat).epilogue.low = 0; }, "Concat cannot clamp"},
    {"NegativeChannel", [](Network& n) { FirstOf(n, Op::kSlice).channel_range().first = -1; }, "its first channel -1"},
    {"ChannelsBeyondTheLast", [](Network& n) { FirstOf(n, Op::kSlice).channel_range().first = 17; },
     "channels from 17 on are not all in"},
    {"SliceOfThePlane", [](Network& n) { n.values[FirstOf(n, Op::kSlice).output].width -= 1; }, "differs from"},
    {"ResizesChannels", [](Network& n) { n.values[FirstOf(n, Op::kResize).output].channels += 1; }, "other channels"},
    {"ScaleIsNotANumber", [](Network& n) { FirstOf(n, Op::kResize).resampling().scale_w = std::nanf(""); },
     "is not within"},
    {"NegativeScale", [](Network& n) { FirstOf(n, Op::kResize).resampling().scale_h = -2; }, "its scale -2"},
    {"UnknownCoordinates",
     [](Network& n) { FirstOf(n, Op::kResize).resampling().coordinates = static_cast<Coordinates>(4); },
     "are not known"},
    {"UnknownNearest", [](Network& n) { FirstOf(n, Op::kResize).resampling().nearest = static_cast<Nearest>(4); },
     "are not known"},
    {"NoBlock", [](Network& n) { FirstOf(n, Op::kDepthToSpace).space_block().block = 0; }, "its blocks of 0"},
    {"OtherBlock", [](Network& n) { FirstOf(n, Op::kDepthToSpace).space_block().block = 3; }, "does not follow from"},
};

class EncoderFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(EncoderFaultTest, IsRefused) {
  Network network = testing::MakeRandomEncoder({});
  GetParam().make(network);
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

TEST(ValidateTest, ALengthIsOneDimensionOfAModel) {
  Network outputs = testing::MakeRandomEncoder({.length = 6}), inputs = outputs;
  outputs.outputs[0].dims = {2, 3, outputs.outputs[0].dims[1]};
  EXPECT_THAT(outputs.ValidateModel(),
              IsError(StatusCode::kInvalidArgument, "have not the length of the sequences, 6"));
  inputs.inputs[1].dims = {2, 3};
  EXPECT_THAT(inputs.Validate(), IsError(StatusCode::kInvalidArgument, "do not start with the length"));
}

const Fault kEncoderFaults[] = {
    {"NoSequences", [](Network& n) { n.sequences.reset(); }, "('input_ids') is no matrix of tokens"},
    {"TokensInAPlane", [](Network& n) { n.values.back().width = 2, n.values[3].height = 2; }, "no matrix of tokens"},
    {"IdsWithChannels", [](Network& n) { n.values[0].channels = 2; }, "no matrix of tokens"},
    {"IdsPerRow", [](Network& n) { n.values[0].per_token = false; }, "no matrix of tokens"},
    {"MaskOutOfRange", [](Network& n) { n.sequences->mask = 3; }, "input 3 cannot be the mask"},
    {"MaskWithValue", [](Network& n) { n.sequences->mask = 0; }, "input 0 cannot be the mask"},
    {"CountsNoInput", [](Network& n) { n.sequences->counted = 3; }, "positions count tokens of input 3"},
    {"CountsANegativeInput", [](Network& n) { n.sequences->counted = -2; }, "positions count tokens of input -2"},
    {"EndsByNoInput", [](Network& n) { n.sequences->end.input = 3; }, "input 3 cannot tell where sequences end"},
    {"EndsByTheMask", [](Network& n) { n.sequences->end.input = 1; }, "input 1 cannot tell where sequences end"},
    {"HasARowForPaddingAlone",
     [](Network& n) {
       for (Layer& layer : n.layers) {
         if (layer.op == Op::kEmbedding && layer.inputs.empty())
           layer.lookup().offset = n.weights[layer.weight].rows() - 1;
       }
       n.sequences->counted = 0;
     },
     "its weight"},
    {"NegativeLength", [](Network& n) { n.sequences->length = -1; }, "length of its sequences, -1"},
    {"BiasIsNotANumber", [](Network& n) { n.sequences->masked_bias = std::nanf(""); }, "not a number"},
    {"InputOfOtherLength", [](Network& n) { n.inputs[1].dims = {5}; }, "do not start with the length"},
    {"OutputOfOtherChannels",
     [](Network& n) {
       n.outputs[0].dims = {-1, 23};
     },
     "other elements than its 24 channels"},
    {"InputIsFloat", [](Network& n) { n.inputs[0].dtype = DType::kFloat32; }, "ids and masks are INT64 or INT32"},
    {"InputHoldsNoIds", [](Network& n) { n.values[0].ids = false; }, "its value holds no ids"},
    {"OutputIsWhole", [](Network& n) { n.outputs[0].dtype = DType::kInt64; }, "outputs are FP32 values"},
    {"LayerReadsIds", [](Network& n) { FirstOf(n, Op::kAdd).inputs[0] = 0; }, "only embeddings read ids"},
    {"RowsFromTokens", [](Network& n) { n.values[n.outputs[0].value].per_token = false; }, "per token"},
    {"SelectMakesTokens", [](Network& n) { n.values[FirstOf(n, Op::kSelectToken).output].per_token = true; },
     "makes a value per token"},
    {"NegativeOffset", [](Network& n) { FirstOf(n, Op::kEmbedding).lookup().offset = -1; }, "its offset -1"},
    {"OffsetBeyondTheTable", [](Network& n) { FirstOf(n, Op::kEmbedding).lookup().offset = 1000; },
     "its weight is [50,24] instead of [1001,24]"},
    {"HeadsDoNotFit", [](Network& n) { FirstOf(n, Op::kAttention).attention().heads = 5; }, "its 5 heads"},
    {"PackedOperands", [](Network& n) { FirstOf(n, Op::kAttention).attention().packed = true; }, "as only plans make"},
    {"GroupsDoNotFit", [](Network& n) { FirstOf(n, Op::kAttention).attention().group_size = 3; },
     "in groups of 3 do not"},
    {"NothingIsShared", [](Network& n) { FirstOf(n, Op::kAttention).attention().group_size = 2; },
     "in groups of 2 do not"},
    {"NoGroups", [](Network& n) { FirstOf(n, Op::kAttention).attention().group_size = 0; }, "groups of heads are of 0"},
    {"NoHeads", [](Network& n) { FirstOf(n, Op::kAttention).attention().heads = 0; }, "its 0 heads"},
    {"ScaleIsInfinite", [](Network& n) { FirstOf(n, Op::kAttention).attention().scale = 1.0f / 0.0f; },
     "its scale is not finite"},
    {"AttentionOfTwo", [](Network& n) { FirstOf(n, Op::kAttention).inputs.pop_back(); }, "2 inputs instead of 3"},
    {"NegativeEpsilon", [](Network& n) { FirstOf(n, Op::kLayerNorm).normalisation().epsilon = -1; }, "its epsilon -1"},
    {"NormOfOtherRows", [](Network& n) { WeightOf(n, Op::kLayerNorm).bias.pop_back(); }, "its bias has 23 elements"},
    {"SparseTable",
     [](Network& n) {
       Weight& weight = WeightOf(n, Op::kEmbedding);
       weight.matrix = CsrMatrix::FromDense(weight.ToDense());
     },
     "weights of Embedding are always dense"},
    {"NormClamps", [](Network& n) { FirstOf(n, Op::kLayerNorm).epilogue.low = 0; }, "LayerNorm cannot clamp"},
};

// Regions begin with activations of tokens; models don't.
TEST(ValidateTest, ModelsReadTokensAsIds) {
  Network network;
  network.values = {{.name = "x", .channels = 8, .per_token = true}, {.name = "y", .channels = 8, .per_token = true}};
  network.inputs = {{"x", DType::kFloat32, {-1, 8}, 0}};
  network.outputs = {{"y", DType::kFloat32, {-1, 8}, 1}};
  network.sequences.emplace();
  Layer layer;
  layer.SetOp(Op::kActivation);
  layer.name = "relu";
  layer.inputs = {0};
  layer.output = 1;
  layer.epilogue.low = 0.0f;
  network.layers = {layer};
  EXPECT_THAT(network.Validate(), IsOk());
  EXPECT_THAT(network.ValidateModel(), IsError(StatusCode::kInvalidArgument, "input 'x': it is FP32"));
}

class PatternFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(PatternFaultTest, IsRefused) {
  Network network = testing::MakeRandomEncoder({.length = 20, .band = 3});
  EXPECT_THAT(network.Validate(), IsOk());
  GetParam().make(network);
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

const Fault kPatternFaults[] = {
    {"OfOtherLength", [](Network& n) { FirstOf(n, Op::kSparseAttention).attention().length = 21; },
     "its pattern is of 21 tokens; sequences have 20"},
    {"OfSequencesWithEnds", [](Network& n) { n.sequences->end.input = 0; },
     "is of all places, and sequences have ends"},
    {"OfOtherNonzeros", [](Network& n) { FirstOf(n, Op::kSparseAttention).attention().nonzeros = 1; },
     "the layer says 20 and 1"},
    {"WithAMask", [](Network& n) { n.sequences->mask = 1; }, "goes with no mask of tokens"},
    {"NegativeScale", [](Network& n) { FirstOf(n, Op::kSparseAttention).attention().scale = -1; },
     "its scale -1 is not positive"},
    {"Malformed",
     [](Network& n) {
       Edit<AttentionPattern>(WeightOf(n, Op::kSparseAttention),
                              [](AttentionPattern& pattern) { pattern.col_indices[0] = 20; });
     },
     "keys must rise and be below 20"},
    {"IsAMatrix",
     [](Network& n) {
       WeightOf(n, Op::kSparseAttention).matrix = CsrMatrix{20, 20, std::vector<uint32_t>(21), {}, {}};
     },
     "its weight is no pattern of keys"},
    {"HasABias", [](Network& n) { WeightOf(n, Op::kSparseAttention).bias.resize(20); }, "its pattern has a bias"},
    {"OfALinearLayer",
     [](Network& n) {
       Weight& linear = n.weights[FirstOf(n, Op::kConv).weight];
       linear = {WeightOf(n, Op::kSparseAttention).matrix, {}};
     },
     "only attention has a pattern"},
};

INSTANTIATE_TEST_SUITE_P(Faults, PatternFaultTest, ::testing::ValuesIn(kPatternFaults),
                         [](const auto& fault) { return fault.param.name; });

INSTANTIATE_TEST_SUITE_P(Faults, DetectorFaultTest, ::testing::ValuesIn(kDetectorFaults),
                         [](const auto& fault) { return fault.param.name; });

INSTANTIATE_TEST_SUITE_P(Faults, EncoderFaultTest, ::testing::ValuesIn(kEncoderFaults),
                         [](const auto& fault) { return fault.param.name; });

INSTANTIATE_TEST_SUITE_P(Faults, NetworkFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

// A single pool whose window at the top lies two rows above the plane.
TEST(ValidateTest, RefusesPoolWindowsInThePadding) {
  Network network;
  network.values = {{"x", 1, 4, 4}, {"y", 1, 6, 4}};
  Layer pool;
  pool.op = Op::kMaxPool;
  pool.name = "pool";
  pool.inputs = {0};
  pool.output = 1;
  pool.window().pad_top = 2;
  network.layers = {pool};
  network.inputs = {{"x", DType::kFloat32, {1, 4, 4}, 0}};
  network.outputs = {{"y", DType::kFloat32, {1, 6, 4}, 1}};
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, "lies in the padding alone"));
  network.layers[0].window().kernel_h = 3;
  network.values[1].height = 4;
  network.outputs[0].dims = {1, 4, 4};
  EXPECT_THAT(network.Validate(), IsOk());
}

TEST(ValidateTest, BoundsWhatASparseWeightDeclares) {
  const int64_t channels = 1 << 15;
  Network network;
  network.values = {{"x", channels, 1, 1}, {"y", channels, 1, 1}};
  CsrMatrix empty{channels, channels, std::vector<uint32_t>(channels + 1), {}, {}};
  network.weights.push_back({empty, {}});
  Layer layer;
  layer.inputs = {0};
  layer.output = 1;
  layer.weight = 0;
  network.layers = {layer};
  network.inputs = {{"x", DType::kFloat32, {channels}, 0}};
  network.outputs = {{"y", DType::kFloat32, {channels}, 1}};
  EXPECT_THAT(network.Validate(), IsError(StatusCode::kInvalidArgument, "has more than"));
}

}  // namespace
}  // namespace swizzle
