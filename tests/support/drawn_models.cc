#include "tests/support/drawn_models.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

#include "kernels/format/shfl_bw.h"
#include "tests/support/network_builder.h"

namespace swizzle::testing {
namespace {

Window Pointwise(int32_t stride = 1) { return SquareWindow(1, stride, 0); }

// Channels as Sputnik's evaluation has them: rounded to 8.
int64_t Widened(int64_t channels, double width) { return std::max<int64_t>(8, std::llround(channels * width / 8) * 8); }

Network WithPorts(NetworkBuilder& b, int input, const std::string& input_name, int output) {
  const NetworkPort in = b.Port(input, input_name), out = b.Port(output, "logits");
  Network network = b.Finish();
  network.inputs = {in};
  network.outputs = {out};
  return network;
}

Network MobileNetV1(double width, double sparsity) {
  NetworkBuilder b(1, 0);
  const int image = b.Value("image", 3, 224, 224);
  int x = b.Conv(image, Widened(32, width), SquareWindow(3, 2, 1), 0.0, kRelu6);
  const std::pair<int64_t, int32_t> blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                                                {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  bool first = true;
  for (const auto& [channels, stride] : blocks) {
    x = b.Depthwise(x, SquareWindow(3, stride, 1), kRelu6);
    x = b.Conv(x, Widened(channels, width), Pointwise(), first ? 0.0 : sparsity, kRelu6);
    first = false;
  }
  return WithPorts(b, image, "image", b.Linear(b.MeanOfPlane(x), 1000, 0.0));
}

int Bottleneck(NetworkBuilder& b, int x, int64_t channels, int32_t stride, double sparsity) {
  const int64_t outputs = 4 * channels;
  int shortcut = x;
  if (stride != 1 || b.value(x).channels != outputs) {
    shortcut = b.Conv(x, outputs, Pointwise(stride), sparsity, kNoEpilogue);
  }
  int y = b.Conv(x, channels, Pointwise(), sparsity, kRelu);
  y = b.Conv(y, channels, SquareWindow(3, stride, 1), sparsity, kRelu);
  return b.Conv(y, outputs, Pointwise(), sparsity, kRelu, shortcut);
}

Network ResNet50(double sparsity) {
  NetworkBuilder b(1, 0);
  const int image = b.Value("image", 3, 224, 224);
  int x = b.Conv(image, 64, SquareWindow(7, 2, 3), 0.0, kRelu);
  x = b.Pool(Op::kMaxPool, x, SquareWindow(3, 2, 1));
  const std::pair<int64_t, int> stages[] = {{64, 3}, {128, 4}, {256, 6}, {512, 3}};
  for (const auto& [channels, blocks] : stages) {
    for (int i = 0; i < blocks; ++i) x = Bottleneck(b, x, channels, i == 0 && channels > 64 ? 2 : 1, sparsity);
  }
  return WithPorts(b, image, "image", b.Linear(b.MeanOfPlane(x), 1000, 0.0));
}

struct EncoderSizes {
  int layers;
  int64_t channels;
  int32_t heads;
  bool pooler;  // else the mean of the tokens
};

int EncoderBlock(NetworkBuilder& b, int x, const EncoderSizes& sizes, double s) {
  const int64_t c = sizes.channels;
  const int q = b.Linear(x, c, s), k = b.Linear(x, c, s), v = b.Linear(x, c, s);
  const int64_t channels_of_a_head = c / sizes.heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(channels_of_a_head));
  const int mixed = b.LayerNorm(b.Linear(b.Attention(q, k, v, sizes.heads, scale), c, s, x));
  const int inner = b.Function(b.Linear(mixed, 4 * c, s), {FunctionKind::kGelu, 0, 0});
  return b.LayerNorm(b.Linear(inner, c, s, mixed));
}

Network Encoder(const EncoderSizes& sizes, double sparsity) {
  constexpr int64_t kVocabulary = 30522, kPositions = 512;
  NetworkBuilder b(1, 0);
  const int ids = b.Ids("input_ids");
  const int words = b.Embedding(ids, kVocabulary, sizes.channels), places = b.Embedding(-1, kPositions, sizes.channels);
  int x = b.LayerNorm(b.Pointwise(Op::kAdd, {words, places}));
  for (int i = 0; i < sizes.layers; ++i) x = EncoderBlock(b, x, sizes, sparsity);
  int y = sizes.pooler ? b.Linear(b.SelectFirstToken(x), sizes.channels, 0.0) : b.MeanTokens(x);
  if (sizes.pooler) y = b.Function(y, {FunctionKind::kTanh, 0, 0});
  const NetworkPort output = b.Port(y, "pooled");
  Network network = b.Finish();
  network.inputs = {{"input_ids", DType::kInt64, {-1}, ids}, {"attention_mask", DType::kInt64, {-1}, -1}};
  network.outputs = {output};
  network.sequences = SequenceInputs{0, 1, -10000.0f, true};
  return network;
}

// A matrix of as many nonzeros, up to a group's, and of their mean square.
DenseMatrix WithVectors(const DenseMatrix& matrix, int64_t vector_rows, std::mt19937& random) {
  const auto nonzeros = static_cast<double>(matrix.nnz());
  const auto kept = static_cast<int64_t>(std::llround(nonzeros / static_cast<double>(matrix.rows)));
  const double squares = std::inner_product(matrix.values.begin(), matrix.values.end(), matrix.values.begin(), 0.0);
  std::uniform_real_distribution<float> value(-1, 1);
  const auto reach = static_cast<float>(std::sqrt(3 * squares / nonzeros));
  std::vector<uint32_t> order = RowsInOrder(matrix.rows), columns = RowsInOrder(matrix.cols);
  std::shuffle(order.begin(), order.end(), random);
  DenseMatrix drawn{matrix.rows, matrix.cols, std::vector<float>(matrix.values.size())};
  for (int64_t place = 0; place < matrix.rows; ++place) {
    if (place % vector_rows == 0) std::shuffle(columns.begin(), columns.end(), random);
    for (int64_t i = 0; i < kept; ++i) drawn.values[order[place] * matrix.cols + columns[i]] = reach * value(random);
  }
  return drawn;
}

}  // namespace

void DrawVectors(Network& network, int64_t vector_rows) {
  std::mt19937 random(11);
  for (Weight& weight : network.weights) {
    if (!IsSparse(weight.format()) || !HasValues(weight.format())) continue;
    const DenseMatrix drawn = WithVectors(weight.ToDense(), vector_rows, random);
    weight.matrix = *WeightMatrix::FromDense(weight.format(), drawn);
  }
}

StatusOr<Network> MakeDrawnModel(const std::string& name, double sparsity) {
  constexpr std::string_view kMobileNet = "mobilenet_v1:";
  if (name == "mobilenet_v1") return MobileNetV1(1.0, sparsity);
  if (name == "resnet50") return ResNet50(sparsity);
  if (name == "minilm") return Encoder({6, 384, 12, false}, sparsity);
  if (name == "bert-base") return Encoder({12, 768, 12, true}, sparsity);
  double width = 0.0;
  const char* const end = name.data() + name.size();
  if (name.starts_with(kMobileNet) && std::from_chars(name.data() + kMobileNet.size(), end, width).ptr == end &&
      width >= 0.25 && width <= 4.0) {
    return MobileNetV1(width, sparsity);
  }
  return InvalidArgument("'", name,
                         "' is no model; there are mobilenet_v1, mobilenet_v1:WIDTH, resnet50, minilm, bert-base");
}

}  // namespace swizzle::testing
