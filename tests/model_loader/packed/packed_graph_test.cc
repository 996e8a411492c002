// Graphs in packed files: every bit of their tensors comes back, and what does not fit is refused.
#include "model_loader/packed/packed_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/base/half_bits.h"
#include "kernels/format/csr.h"
#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_reader.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kInvalid;

// Random bytes, of which elements are `common` at this share.
std::vector<std::byte> Draw(int64_t elements, int32_t element_bytes, double share, uint8_t common, uint32_t seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution is_common(share);
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < elements; ++i) {
    const bool filled = is_common(random);
    for (int32_t byte = 0; byte < element_bytes; ++byte) {
      bytes.push_back(static_cast<std::byte>(filled ? common : random() % 256));
    }
  }
  return bytes;
}

TEST(CompressedElementsTest, KeepsEveryBit) {
  for (const int32_t element_bytes : {1, 2, 4, 8}) {
    for (const int64_t elements : {0, 1, 63, 64, 65, 1000}) {
      for (const double share : {0.0, 0.5, 0.9, 1.0}) {
        const auto bytes = Draw(elements, element_bytes, share, 0, 3);
        const CompressedElements made = Compressed(bytes, element_bytes);
        ASSERT_THAT(made.Validate(), IsOk());
        EXPECT_EQ(made.Expanded(), bytes);
        EXPECT_LE(made.stored_bytes(), std::ssize(bytes));
      }
    }
  }
}

TEST(CompressedElementsTest, LeavesOutTheMostCommon) {
  EXPECT_NEAR(static_cast<double>(Compressed(Draw(6400, 4, 0.9, 0, 1), 4).stored_bytes()) / (6400 * 4), 0.1 + 1.0 / 32,
              0.01);
  const auto zero_points = Draw(6400, 1, 0.9, 128, 1);  // of a quantised weight
  const CompressedElements made = Compressed(zero_points, 1);
  EXPECT_EQ(made.filler, 128u);
  EXPECT_NEAR(static_cast<double>(made.stored_bytes()) / 6400, 0.1 + 1.0 / 8, 0.02);
  // A negative zero is no zero.
  const float negative[] = {-0.0f, 0.0f, 0.0f, 0.0f};
  EXPECT_EQ(Compressed(std::as_bytes(std::span(negative)), 4).values.size(), sizeof(float));
}

TEST(CompressedElementsTest, RefusesWhatDoesNotFit) {
  const CompressedElements good = Compressed(Draw(100, 4, 0.9, 0, 1), 4);
  const auto with = [&](auto change) {
    CompressedElements bad = good;
    change(bad);
    return bad.Validate();
  };
  EXPECT_THAT(with([](auto& bad) { bad.element_bytes = 3; }), IsError(kInvalid, "its elements are of 3 bytes"));
  EXPECT_THAT(with([](auto& bad) { bad.elements = -1; }), IsError(kInvalid, "it cannot have -1 elements"));
  EXPECT_THAT(with([](auto& bad) { bad.elements = 300; }), IsError(kInvalid, "300 elements, and bits for 128"));
  EXPECT_THAT(with([](auto& bad) { bad.occupied[1] |= uint64_t{1} << 63; }), IsError(kInvalid, "beyond its elements"));
  EXPECT_THAT(with([](auto& bad) { bad.occupied[0] = 0; }), IsError(kInvalid, "elements of 4 bytes in"));
  EXPECT_THAT(with([](auto& bad) { bad.values.pop_back(); }), IsError(kInvalid, "elements of 4 bytes in"));
}

// Numbers that halves have, too; four of five are zeros.
DenseMatrix DrawMatrix(int64_t rows, int64_t cols) {
  DenseMatrix dense{rows, cols, std::vector<float>(static_cast<size_t>(rows * cols))};
  for (size_t i = 0; i < dense.values.size(); i += 5) dense.values[i] = 0.25f * static_cast<float>(i % 31) - 2.0f;
  return dense;
}

PackedGraph Sample() {
  PackedGraph graph{Draw(500, 1, 0.0, 0, 7), {}};
  graph.tensors.push_back(Compressed(Draw(300, 4, 0.9, 0, 1), 4));
  graph.tensors.push_back(Compressed(Draw(70, 2, 0.0, 0, 2), 2));
  graph.tensors.push_back(Compressed(Draw(900, 1, 0.8, 9, 3), 1));
  graph.tensors.push_back(MatrixElements{CsrMatrix::FromDense(DrawMatrix(6, 40)), DType::kFloat32, true});
  graph.tensors.push_back(
      MatrixElements{*WeightMatrix::FromDense(Format::kBitmap, DrawMatrix(5, 70)), DType::kFloat16});
  DenseMatrix wholes = DrawMatrix(8, 50);
  for (float& value : wholes.values) value = std::trunc(value * 20);
  graph.tensors.push_back(MatrixElements{CsrMatrix::FromDense(wholes), DType::kInt8, false, 3});
  graph.tensors.push_back(MatrixElements{CsrMatrix::FromDense(wholes), DType::kUint8, true, 128});
  graph.zeros["x"] = {0.1, 0.2, 0.3, 0.5};
  return graph;
}

TEST(PackedGraphTest, ComesBackWhole) {
  const PackedGraph graph = Sample();
  const auto file = EncodePacked(graph);
  ASSERT_THAT(file, IsOk());
  const auto read = ReadPackedModel(*file);
  ASSERT_THAT(read, IsOk());
  const auto& again = std::get<PackedGraph>(*read);
  EXPECT_EQ(again.model, graph.model);
  EXPECT_EQ(again.zeros, graph.zeros);
  ASSERT_EQ(again.tensors.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    const auto elements = again.ElementsAt(std::to_string(i), DenseBytes(graph.tensors[i]));
    ASSERT_THAT(elements, IsOk());
    EXPECT_EQ(*elements, Expanded(graph.tensors[i]));
    EXPECT_EQ(StoredBytes(again.tensors[i]), StoredBytes(graph.tensors[i]));
  }
  // Whole numbers take a byte, and zeros are the zero point.
  const auto bytes = Expanded(again.tensors[5]);
  EXPECT_EQ(std::ranges::count(bytes, std::byte{3}) + std::get<MatrixElements>(again.tensors[5]).matrix.nnz(), 400);
  EXPECT_EQ(Expanded(again.tensors[6])[8], std::byte{128});
  EXPECT_LT(StoredBytes(again.tensors[5]), 80 * 3 + 9 * 4 + 1);
  EXPECT_EQ(*EncodePacked(again), *file);
  EXPECT_THAT(again.ElementsAt("7", 4), IsError(kInvalid, "no elements '7'; it has 7 tensors"));
  EXPECT_THAT(again.ElementsAt("0x", 4), IsError(kInvalid, "no elements '0x'"));
  EXPECT_THAT(again.ElementsAt("0", 4), IsError(kInvalid, "1200 bytes of elements where 4 are asked for"));
  EXPECT_THAT(ReadPacked(*file), IsError(StatusCode::kUnimplemented, "holds a graph"));
}

TEST(MatrixElementsTest, GivesTheTensorBackInEveryFormatAndType) {
  const DenseMatrix dense = DrawMatrix(16, 32);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool transposed : {false, true}) {
      for (const Format format : {Format::kCsr, Format::kBitmap, Format::kHbEll}) {
        const MatrixElements made{*WeightMatrix::FromDense(format, dense), dtype, transposed};
        const std::vector<std::byte> elements = made.Expanded();
        ASSERT_EQ(std::ssize(elements), made.dense_bytes());
        for (int64_t row = 0; row < 16; ++row) {
          for (int64_t col = 0; col < 32; ++col) {
            const size_t place = static_cast<size_t>(transposed ? col * 16 + row : row * 32 + col);
            const std::byte* const from = elements.data() + place * ElementBytes(dtype);
            float value = 0;
            uint16_t half = 0;
            std::memcpy(dtype == DType::kFloat32 ? static_cast<void*>(&value) : &half, from, ElementBytes(dtype));
            if (dtype != DType::kFloat32) value = FloatOfHalfBits(half, dtype);
            ASSERT_EQ(value, dense.values[static_cast<size_t>(row * 32 + col)]);
          }
        }
        PackedGraph graph{Draw(10, 1, 0.0, 0, 7), {made}};
        const auto read = ReadPackedModel(*EncodePacked(graph));
        ASSERT_THAT(read, IsOk());
        const PackedElements& again = std::get<PackedGraph>(*read).tensors[0];
        EXPECT_EQ(Expanded(again), elements);
        EXPECT_EQ(StoredBytes(again), made.stored_bytes());
      }
    }
  }
}

TEST(PackedGraphTest, NoChangedBytePasses) {
  const std::vector<std::byte> file = *EncodePacked(Sample());
  for (size_t i = 0; i < file.size(); ++i) {
    std::vector<std::byte> changed = file;
    changed[i] ^= std::byte{1};
    ASSERT_FALSE(ReadPackedModel(changed).ok()) << "byte " << i;
  }
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    ASSERT_FALSE(ReadPackedModel(std::span(file).first(bytes)).ok()) << bytes;
  }
}

// The file with another header, whose checksum is right.
template <typename Change>
std::vector<std::byte> WithHeader(const Change& change) {
  std::vector<std::byte> file = *EncodePacked(Sample());
  PackedPrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  packed::Header header;
  EXPECT_TRUE(header.ParseFromArray(file.data() + sizeof(prefix), static_cast<int>(prefix.header_bytes)));
  const size_t arrays_begin = AlignedUp(sizeof(prefix) + prefix.header_bytes);
  change(header);
  const std::string text = header.SerializeAsString();
  prefix.header_bytes = static_cast<uint32_t>(text.size());
  prefix.header_checksum = HeaderChecksum(prefix, std::as_bytes(std::span(text)));
  std::vector<std::byte> made(AlignedUp(sizeof(prefix) + text.size()));
  std::memcpy(made.data(), &prefix, sizeof(prefix));
  std::memcpy(made.data() + sizeof(prefix), text.data(), text.size());
  made.insert(made.end(), file.begin() + static_cast<int64_t>(arrays_begin), file.end());
  return made;
}

TEST(PackedGraphTest, RefusesHeadersThatLie) {
  EXPECT_THAT(ReadPackedModel(WithHeader([](packed::Header&) {})), IsOk());
  const auto refused = [](auto change, const std::string& why) {
    EXPECT_THAT(ReadPackedModel(WithHeader(change)), IsError(kInvalid, why));
  };
  refused([](auto& header) { header.mutable_graph()->mutable_tensors(0)->set_elements(int64_t{1} << 50); },
          "tensor 0: it cannot have");
  refused([](auto& header) { header.mutable_graph()->mutable_tensors(1)->set_element_bytes(1); }, "tensor 1: it holds");
  refused([](auto& header) { header.mutable_graph()->mutable_model()->set_type(packed::ELEMENT_TYPE_INT8); },
          "is not one of UINT8");
  refused([](auto& header) { header.mutable_graph()->mutable_tensors()->RemoveLast(); }, "after its end");
  refused([](auto& header) { header.add_layers(); }, "both a graph and layers");
  const auto matrix_refused = [&](auto change, const std::string& why) {
    refused([&](auto& header) { change(*header.mutable_graph()->mutable_tensors(3)->mutable_matrix()); }, why);
  };
  matrix_refused([](auto& matrix) { matrix.set_rows(0); }, "tensor 3: it has 240 elements in 0 rows");
  matrix_refused([](auto& matrix) { matrix.set_rows(7); }, "tensor 3: it has 240 elements in 7 rows");
  matrix_refused([](auto& matrix) { matrix.set_rows(12); }, "tensor 3: ");
  matrix_refused([](auto& matrix) { matrix.set_datatype("FP16"); }, "its elements are of 4 bytes, and of FP16");
  refused(
      [](auto& header) {
        packed::Elements& tensor = *header.mutable_graph()->mutable_tensors(3);
        tensor.mutable_matrix()->set_datatype("INT8");
        tensor.set_element_bytes(1);
      },
      "its values are not of INT8");
  refused(
      [](auto& header) {
        packed::Elements& tensor = *header.mutable_graph()->mutable_tensors(3);
        tensor.mutable_matrix()->set_datatype("FP16");
        tensor.set_element_bytes(2);
      },
      "its values have element type");
  matrix_refused([](auto& matrix) { matrix.set_datatype("INT64"); }, "of no type that matrices have");
  matrix_refused([](auto& matrix) { matrix.mutable_parts()->set_format("pattern"); }, "no format with values");
  matrix_refused([](auto& matrix) { matrix.mutable_parts()->set_format("x"); }, "no format with values");
  refused([](auto& header) { header.mutable_graph()->mutable_tensors(3)->set_elements(int64_t{1} << 40); },
          "tensor 3 of 1099511627776 elements is impossible");
  refused(
      [](auto& header) {
        header.mutable_graph()->mutable_tensors(3)->set_elements((int64_t{1} << 31) + 1);
        header.mutable_graph()->mutable_tensors(3)->set_element_bytes(1);
      },
      "tensor 3 of 2147483649 elements is impossible");
  refused([](auto& header) { header.mutable_graph()->mutable_zeros(0)->mutable_zeros()->set_runs(0.9); },
          "value 'x': ");
}

}  // namespace
}  // namespace swizzle
