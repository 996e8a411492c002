#include "model_loader/packed/packed_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "kernels/format/attention_pattern.h"
#include "kernels/format/csr.h"
#include "model_loader/network/shared_weights.h"
#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_reader.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::MakeRandomNetwork;

// A matrix by its parts, to be compared.
class Parts final : public PartSink {
 public:
  explicit Parts(const WeightMatrix& matrix) { matrix.Write(*this); }
  void Scalar(std::string_view name, int64_t value) override { scalars[std::string(name)] = value; }
  void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
    arrays[std::string(array.name)].assign(elements.begin(), elements.end());
  }
  bool operator==(const Parts& other) const { return scalars == other.scalars && arrays == other.arrays; }

 private:
  std::map<std::string, int64_t> scalars;
  std::map<std::string, std::vector<std::byte>> arrays;
};

void ExpectSameWeights(const std::vector<Weight>& a, const std::vector<Weight>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(a[i].bias, b[i].bias);
    EXPECT_EQ(a[i].quantisation, b[i].quantisation);
    ASSERT_EQ(a[i].format(), b[i].format());
    EXPECT_EQ(a[i].matrix.size(), b[i].matrix.size());
    EXPECT_TRUE(Parts(a[i].matrix) == Parts(b[i].matrix));
  }
}

void ExpectSameLayers(const std::vector<Layer>& a, const std::vector<Layer>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(static_cast<const Operator&>(a[i]), b[i]);
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].inputs, b[i].inputs);
    EXPECT_EQ(a[i].output, b[i].output);
    EXPECT_EQ(a[i].weight, b[i].weight);
  }
}

void ExpectSamePorts(const std::vector<NetworkPort>& a, const std::vector<NetworkPort>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].dtype, b[i].dtype);
    EXPECT_EQ(a[i].dims, b[i].dims);
    EXPECT_EQ(a[i].value, b[i].value);
  }
}

void ExpectSameNetwork(const Network& a, const Network& b) {
  EXPECT_EQ(a.producer, b.producer);
  EXPECT_EQ(a.batch_size, b.batch_size);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    EXPECT_EQ(a.values[i].name, b.values[i].name);
    EXPECT_EQ(a.values[i].WithBatch(1), b.values[i].WithBatch(1));
    EXPECT_EQ(a.values[i].per_token, b.values[i].per_token);
    EXPECT_EQ(a.values[i].ids, b.values[i].ids);
    EXPECT_EQ(a.values[i].quantisation, b.values[i].quantisation);
    EXPECT_EQ(a.values[i].zeros, b.values[i].zeros);
  }
  ExpectSameLayers(a.layers, b.layers);
  ExpectSameWeights(a.weights, b.weights);
  ExpectSamePorts(a.inputs, b.inputs);
  ExpectSamePorts(a.outputs, b.outputs);
  EXPECT_EQ(a.sequences, b.sequences);
}

Network RoundTrip(const Network& network) {
  const auto bytes = EncodePacked(network);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  StatusOr<Network> read = ReadPacked(*bytes);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : Network();
}

TEST(PackedWriterTest, KeepsTokenSequences) {
  for (const testing::RandomEncoderOptions& options :
       {testing::RandomEncoderOptions{}, testing::RandomEncoderOptions{.batch_size = 2, .length = 9},
        testing::RandomEncoderOptions{.length = 30, .band = 4}, testing::RandomEncoderOptions{.reach = 5},
        testing::RandomEncoderOptions{.length = 30, .windows = 5}, testing::RandomEncoderOptions{.places = 7},
        testing::RandomEncoderOptions{.rotary = 40}, testing::RandomEncoderOptions{.padding = 3}}) {
    Network network = testing::MakeRandomEncoder(options);
    network.layers.back().function().kind = FunctionKind::kGeluTanh;
    for (Layer& layer : network.layers) {
      if (layer.op == Op::kSelectToken) layer.token_choice().token = -1;
    }
    ExpectSameNetwork(RoundTrip(network), network);
  }
}

// A linear layer of 2 x `cols` whose first row ends in 64 nonzeros.
Network WideLayer(int64_t cols) {
  Network network;
  network.values = {{"x", cols, 1, 1}, {"y", 2, 1, 1}};
  network.inputs = {{"x", DType::kFloat32, {cols}, 0}};
  network.outputs = {{"y", DType::kFloat32, {2}, 1}};
  CsrMatrix csr;
  csr.rows = 2;
  csr.cols = cols;
  csr.row_offsets = {0, 64, 64};
  for (uint32_t i = 64; i > 0; --i) csr.col_indices.push_back(static_cast<uint32_t>(cols) - i);
  csr.values.assign(64, 0.5f);
  Layer layer;
  layer.name = "wide";
  layer.inputs = {0};
  layer.output = 1;
  layer.weight = 0;
  network.layers = {layer};
  network.weights = {{csr, {}}};
  return network;
}

TEST(PackedWriterTest, WritesSharedWeightsOnce) {
  Network network = WideLayer(100);
  Layer again = network.layers[0];
  again.name = "again";
  again.output = 2;
  network.values.push_back({"z", 2, 1, 1});
  network.layers.push_back(again);
  network.outputs.push_back({"z", DType::kFloat32, {2}, 2});
  const auto version_of = [](const Network& of) {
    PackedPrefix prefix;
    const auto bytes = EncodePacked(of);
    std::memcpy(&prefix, bytes->data(), sizeof(prefix));
    return prefix.version;
  };
  ExpectSameNetwork(RoundTrip(network), network);
  EXPECT_EQ(version_of(network), kSharedWeightsVersion) << "older readers refuse it by its version";
  UnshareWeights(network);
  ASSERT_EQ(network.weights.size(), 2u);
  ExpectSameNetwork(RoundTrip(network), network);
  EXPECT_EQ(version_of(network), kNetworkVersion);
}

TEST(PackedWriterTest, OlderReadersRefuseSequencesThatEnd) {
  Network network = testing::MakeRandomEncoder({});
  network.sequences->end = {0, true, 0};
  ExpectSameNetwork(RoundTrip(network), network);
  PackedPrefix prefix;
  std::memcpy(&prefix, EncodePacked(network)->data(), sizeof(prefix));
  EXPECT_EQ(prefix.version, kEndsVersion);
}

std::string ReadText(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(PackedWriter, RoundTripKeepsEverything) {
  for (const double sparsity : {0.0, 0.5, 0.9, 1.0}) {
    SCOPED_TRACE(sparsity);
    Network network = MakeRandomNetwork({.sparsity = sparsity});
    network.producer = "pytorch 2.11.0";
    ASSERT_TRUE(network.Validate().ok()) << network.Validate();
    ExpectSameNetwork(network, RoundTrip(network));
  }
}

TEST(PackedWriter, RoundTripKeepsZerosOfCalibrationData) {
  Network network = MakeRandomNetwork({.sparsity = 0.9});
  network.values[1].zeros = InputZeros{0.1, 0.25, 0.5, 0.75};
  network.values[2].zeros = InputZeros{};
  ExpectSameNetwork(network, RoundTrip(network));
}

TEST(PackedWriter, RoundTripKeepsScalesAndZeroPoints) {
  Network network = MakeRandomNetwork({.sparsity = 0.9});
  network.values[1].quantisation = Quantisation{DType::kUint8, {0.125f}, {17}};
  Weight& weight = network.weights[0];
  weight.quantisation = Quantisation{DType::kInt8, {}, {}};
  for (int64_t row = 0; row < weight.rows(); ++row) {
    weight.quantisation->scales.push_back(0.5f + static_cast<float>(row));
    weight.quantisation->zero_points.push_back(static_cast<int32_t>(row % 100) - 50);
  }
  ASSERT_TRUE(network.Validate().ok()) << network.Validate();
  ExpectSameNetwork(network, RoundTrip(network));
}

// The network with the first weight's values rounded to multiples of its rows' scales.
Network WithWholeValues() {
  Network network = MakeRandomNetwork({.sparsity = 0.5});
  Weight& weight = network.weights[0];
  weight.quantisation = Quantisation{DType::kInt8, {}, {}};
  for (int64_t row = 0; row < weight.rows(); ++row) {
    weight.quantisation->scales.push_back(0.01f * static_cast<float>(row + 1));
  }
  DenseMatrix dense = weight.ToDense();
  for (int64_t i = 0; i < weight.rows() * weight.cols(); ++i) {
    const float scale = weight.quantisation->scales[i / weight.cols()];
    const float whole = std::nearbyint(std::clamp(dense.values[i] / scale, -127.0f, 127.0f));
    dense.values[i] = scale * (whole == 0 ? 1.0f : whole) * (dense.values[i] == 0 ? 0.0f : 1.0f);
  }
  weight.matrix = *WeightMatrix::FromDense(weight.format(), dense);
  return network;
}

TEST(PackedWriter, QuantisedValuesTakeAByteEach) {
  const Network network = WithWholeValues();
  ExpectSameNetwork(network, RoundTrip(network));
  Network real = network;
  real.weights[0].quantisation.reset();
  const auto values = static_cast<double>(network.weights[0].nonzeros());
  const size_t whole_bytes = EncodePacked(network)->size(), real_bytes = EncodePacked(real)->size();
  EXPECT_NEAR(static_cast<double>(real_bytes) - static_cast<double>(whole_bytes), 3 * values, 1024);
  EXPECT_EQ(network.StoredWeightBytes(), real.StoredWeightBytes() - 3 * static_cast<int64_t>(values));
}

TEST(PackedWriter, RoundTripKeepsAFixedBatchAndEveryWindowField) {
  Network network = MakeRandomNetwork({.batch_size = 3});
  for (Layer& layer : network.layers) {
    if (layer.op == Op::kAveragePool) layer.window().count_include_pad = true;
  }
  ExpectSameNetwork(network, RoundTrip(network));
}

TEST(PackedWriter, ColumnIndicesTakeTwoBytesWhereTheyFit) {
  for (const int64_t cols : {65536, 65537}) ExpectSameNetwork(WideLayer(cols), RoundTrip(WideLayer(cols)));
  EXPECT_LT(EncodePacked(WideLayer(65536))->size(), EncodePacked(WideLayer(65537))->size());
}

TEST(PackedWriter, StoresWhatStoredWeightBytesSays) {
  const Network network = MakeRandomNetwork({});
  const size_t file_bytes = EncodePacked(network)->size();
  const size_t weight_bytes = static_cast<size_t>(network.StoredWeightBytes());
  const size_t most_padding = network.weights.size() * 4 * 64;
  EXPECT_GT(file_bytes, weight_bytes);
  EXPECT_LT(file_bytes, weight_bytes + most_padding + 4096);
}

TEST(PackedWriter, EqualNetworksGiveEqualBytes) {
  EXPECT_EQ(*EncodePacked(MakeRandomNetwork({})), *EncodePacked(MakeRandomNetwork({})));
}

TEST(PackedWriter, WritesAFileThatReadsBack) {
  const TemporaryFolder folder;
  const Network network = MakeRandomNetwork({});
  ASSERT_TRUE(WritePacked(network, folder / "model.swz").ok());
  const std::string text = ReadText(folder / "model.swz");
  EXPECT_TRUE(ReadPacked(std::as_bytes(std::span(text))).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a temporary file is left";
}

TEST(PackedWriter, RefusesABrokenNetworkAndKeepsTheOldFile) {
  const TemporaryFolder folder;
  std::ofstream(folder / "model.swz") << "old";
  Network network = MakeRandomNetwork({});
  network.layers[0].weight = 99;
  EXPECT_EQ(WritePacked(network, folder / "model.swz").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadText(folder / "model.swz"), "old");
}

TEST(PackedWriter, NamesAPlaceItCannotWriteTo) {
  const TemporaryFolder folder;
  const Status status = WritePacked(MakeRandomNetwork({}), folder / "missing" / "model.swz");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("missing/model.swz"));
}

}  // namespace
}  // namespace swizzle
