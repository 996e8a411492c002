// Packed files of every format with something changed at random: what is damaged is refused by its checksum, and what a
// hostile writer gave right checksums is refused by what it says, or is another network, whose weights convert.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/format/format_row.h"
#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_reader.h"
#include "model_loader/packed/packed_writer.h"
#include "proto/packed_model.pb.h"
#include "tests/support/random_encoder.h"

namespace swizzle {
namespace {

using Bytes = std::vector<std::byte>;

// In blocks of 16 rows the same two of any four columns: every format holds it.
DenseMatrix Draw(int64_t rows, int64_t cols) {
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int64_t row = i / cols, col = i % cols;
    const bool kept = (col + row / 16) % 4 < 2 && (row / 16 + col / 16) % 3 != 2;
    if (kept) dense.values[i] = static_cast<float>(1 + row + col);
  }
  return dense;
}

// A linear layer in this format; of patterns, which are of attention, an encoder.
Network NetworkOf(Format format) {
  if (!HasValues(format)) return testing::MakeRandomEncoder({.length = 30, .band = 4});
  constexpr int64_t kRows = 45, kCols = 60;
  Network network;
  network.values = {{"x", kCols, 1, 1}, {"y", kRows, 1, 1}};
  network.inputs = {{"x", DType::kFloat32, {kCols}, 0}};
  network.outputs = {{"y", DType::kFloat32, {kRows}, 1}};
  Layer layer;
  layer.name = "only";
  layer.inputs = {0};
  layer.output = 1;
  layer.weight = 0;
  network.layers = {layer};
  network.weights = {{*WeightMatrix::FromDense(format, Draw(kRows, kCols)), {}}};
  return network;
}

class PackedCorruptionsTest : public ::testing::TestWithParam<Format> {
 protected:
  PackedCorruptionsTest() : file_(*EncodePacked(NetworkOf(GetParam()))) {
    std::memcpy(&prefix_, file_.data(), sizeof(prefix_));
    SWIZZLE_CHECK(header_.ParseFromArray(file_.data() + sizeof(prefix_), static_cast<int>(prefix_.header_bytes)));
    arrays_begin_ = AlignedUp(sizeof(prefix_) + prefix_.header_bytes);
  }

  // The parts of the weight in this format.
  packed::Matrix& Parts(packed::Header& header) const {
    for (packed::Weight& weight : *header.mutable_weights()) {
      if (weight.parts().format() == FormatName(GetParam())) return *weight.mutable_parts();
    }
    SWIZZLE_CHECK(false);
    return *header.mutable_weights(0)->mutable_parts();
  }
  std::span<std::byte> BytesOf(Bytes& file, const packed::Array& array) const {
    return std::span(file).subspan(arrays_begin_ + array.offset(), array.bytes());
  }

  // The file with another header, which is as long, and whatever its arrays hold now.
  Bytes WithHeader(Bytes file, const packed::Header& header) const {
    const std::string text = header.SerializeAsString();
    PackedPrefix prefix = prefix_;
    prefix.header_bytes = static_cast<uint32_t>(text.size());
    prefix.header_checksum = HeaderChecksum(prefix, std::as_bytes(std::span(text)));
    Bytes made(AlignedUp(sizeof(prefix) + text.size()));
    std::memcpy(made.data(), &prefix, sizeof(prefix));
    std::memcpy(made.data() + sizeof(prefix), text.data(), text.size());
    made.insert(made.end(), file.begin() + static_cast<int64_t>(arrays_begin_), file.end());
    return made;
  }

  Bytes file_;
  PackedPrefix prefix_;
  packed::Header header_;
  uint64_t arrays_begin_ = 0;
};

// Changes some neighbouring bytes, which all differ from what they were.
std::string Damage(std::span<std::byte> bytes, std::mt19937& random) {
  const size_t count = std::min<size_t>(bytes.size(), size_t{1} << random() % 4);
  const size_t at = random() % (bytes.size() - count + 1);
  for (std::byte& byte : bytes.subspan(at, count)) byte ^= static_cast<std::byte>(1 + random() % 255);
  return Concat(count, " bytes from ", at, " on");
}

TEST_P(PackedCorruptionsTest, WhatIsDamagedIsRefused) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 2000; ++turn) {
    Bytes file = file_;
    const packed::Matrix& parts = Parts(header_);
    const auto& array = parts.arrays(static_cast<int>(random() % parts.arrays_size()));
    if (array.array().bytes() == 0) continue;
    const std::string what = Damage(BytesOf(file, array.array()), random);
    const auto network = ReadPacked(file);
    ASSERT_EQ(network.status().code(), StatusCode::kInvalidArgument) << array.name() << ", " << what;
  }
}

// Makes one element another, by a bit, by an extreme or by that of another place.
std::string ChangeElement(std::span<std::byte> bytes, size_t element_bytes, std::mt19937& random) {
  const size_t elements = bytes.size() / element_bytes, at = random() % elements, other = random() % elements;
  const auto element = bytes.subspan(at * element_bytes, element_bytes);
  const int kind = static_cast<int>(random() % 3);
  if (kind == 0) element[random() % element_bytes] ^= std::byte{1} << random() % 8;
  if (kind == 1) std::ranges::fill(element, random() % 2 == 0 ? std::byte{0xFF} : std::byte{0});
  if (kind == 2) std::ranges::swap_ranges(element, bytes.subspan(other * element_bytes, element_bytes));
  return Concat("element ", at, kind == 0 ? ", a bit" : kind == 1 ? ", an extreme" : Concat(" and ", other));
}

size_t ElementBytes(packed::ElementType type) {
  for (const DType dtype : {DType::kUint8, DType::kInt8, DType::kUint16, DType::kUint32, DType::kFloat32}) {
    if (PackedType(dtype) == type) return swizzle::ElementBytes(dtype);
  }
  SWIZZLE_CHECK(false);
  return 0;
}

TEST_P(PackedCorruptionsTest, WhatHasARightChecksumIsRefusedOrAnotherNetwork) {
  std::mt19937 random(6);
  int refused = 0;
  constexpr int kTurns = 3000;
  for (int turn = 0; turn < kTurns; ++turn) {
    Bytes file = file_;
    packed::Header header = header_;
    packed::Matrix& parts = Parts(header);
    const int scalars = parts.scalars_size(), part = static_cast<int>(random() % (scalars + parts.arrays_size()));
    std::string what;
    if (part < scalars) {
      packed::Scalar& scalar = *parts.mutable_scalars(part);
      scalar.set_value(scalar.value() ^ int64_t{1} << random() % 64);
      what = Concat(scalar.name(), " = ", scalar.value());
    } else {
      packed::Array& array = *parts.mutable_arrays(part - scalars)->mutable_array();
      if (array.bytes() == 0) continue;
      const auto bytes = BytesOf(file, array);
      what =
          Concat(parts.arrays(part - scalars).name(), ", ", ChangeElement(bytes, ElementBytes(array.type()), random));
      array.set_checksum(Checksum(bytes));
    }
    SCOPED_TRACE(what);
    const auto network = ReadPacked(WithHeader(file, header));
    if (!network.ok()) {
      EXPECT_EQ(network.status().code(), StatusCode::kInvalidArgument) << network.status();
      ++refused;
      continue;
    }
    ASSERT_TRUE(network->Validate().ok()) << network->Validate();
    for (const Weight& weight : network->weights) {
      if (!HasValues(weight.format())) continue;
      ASSERT_EQ(std::ssize(weight.ToDense().values), weight.rows() * weight.cols());
    }
  }
  EXPECT_GT(refused, IsSparse(GetParam()) ? kTurns / 20 : -1);
}

std::vector<Format> AllFormats() {
  std::vector<Format> formats;
  for (const FormatRow& row : FormatRows()) formats.push_back(row.format);
  return formats;
}
INSTANTIATE_TEST_SUITE_P(Formats, PackedCorruptionsTest, ::testing::ValuesIn(AllFormats()), [](const auto& instance) {
  std::string name(FormatName(instance.param));
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace swizzle
