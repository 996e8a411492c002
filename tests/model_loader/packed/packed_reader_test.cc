#include "model_loader/packed/packed_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>

#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_writer.h"
#include "proto/packed_model.pb.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

Network SmallNetwork() { return testing::MakeRandomNetwork({.image = 6}); }

Bytes Encode(const Network& network) {
  StatusOr<Bytes> bytes = EncodePacked(network);
  SWIZZLE_CHECK(bytes.ok());
  return *std::move(bytes);
}

// A well-formed file taken apart, to be put together again with one thing wrong and every other checksum right.
struct TakenApart {
  PackedPrefix prefix;
  packed::Header header;
  Bytes arrays;

  explicit TakenApart(const Bytes& file) {
    std::memcpy(&prefix, file.data(), sizeof(prefix));
    SWIZZLE_CHECK(header.ParseFromArray(file.data() + sizeof(prefix), static_cast<int>(prefix.header_bytes)));
    arrays.assign(file.begin() + static_cast<int64_t>(AlignedUp(sizeof(prefix) + prefix.header_bytes)), file.end());
  }

  std::span<std::byte> BytesOf(const packed::Array& array) {
    return std::span(arrays).subspan(array.offset(), array.bytes());
  }

  // Overwrites one element of an array, and its checksum.
  template <typename T>
  void Set(packed::Array& array, size_t index, T value) {
    std::memcpy(BytesOf(array).data() + index * sizeof(T), &value, sizeof(T));
    array.set_checksum(Checksum(BytesOf(array)));
  }

  Bytes PutTogether() {
    const std::string text = header.SerializeAsString();
    prefix.header_bytes = static_cast<uint32_t>(text.size());
    prefix.header_checksum = HeaderChecksum(prefix, std::as_bytes(std::span(text)));
    Bytes file(AlignedUp(sizeof(prefix) + text.size()));
    std::memcpy(file.data(), &prefix, sizeof(prefix));
    std::memcpy(file.data() + sizeof(prefix), text.data(), text.size());
    file.insert(file.end(), arrays.begin(), arrays.end());
    return file;
  }
};

std::string ErrorOf(const Bytes& file) {
  const StatusOr<Network> network = ReadPacked(file);
  return network.ok() ? "it was read without an error" : std::string(network.status().message());
}

// The error after `break_it` changed the header or arrays. Weight 0 is dense, weight 1 CSR.
std::string ErrorAfter(const std::function<void(TakenApart&)>& break_it) {
  TakenApart parts(Encode(SmallNetwork()));
  SWIZZLE_CHECK(parts.header.weights(0).parts().format() == "dense" &&
                parts.header.weights(1).parts().format() == "csr");
  break_it(parts);
  return ErrorOf(parts.PutTogether());
}

packed::Weight& Dense(TakenApart& parts) { return *parts.header.mutable_weights(0); }
packed::Matrix& Csr(TakenApart& parts) { return *parts.header.mutable_weights(1)->mutable_parts(); }
packed::Array& RowOffsets(TakenApart& parts) { return *Csr(parts).mutable_arrays(0)->mutable_array(); }
packed::Array& ColIndices(TakenApart& parts) { return *Csr(parts).mutable_arrays(1)->mutable_array(); }
packed::Array& Values(TakenApart& parts) { return *Csr(parts).mutable_arrays(2)->mutable_array(); }

TEST(PackedReader, PuttingTogetherUnchangedPartsReads) {
  TakenApart parts(Encode(SmallNetwork()));
  EXPECT_TRUE(ReadPacked(parts.PutTogether()).ok());
}

// An encoder with a pattern of keys, written by swizzle-pack 0.1.0.
TEST(PackedReader, FilesOfVersion1AreRead) {
  std::ifstream stream(SWIZZLE_SOURCE_DIR "/tests/testdata/packed/version_1.swz", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto network = ReadPacked(std::as_bytes(std::span(text)));
  ASSERT_TRUE(network.ok()) << network.status();
  const auto count = [&](Format format) { return std::ranges::count(network->weights, format, &Weight::format); };
  EXPECT_EQ(count(Format::kDense), 5);
  EXPECT_EQ(count(Format::kCsr), 7);
  EXPECT_EQ(count(Format::kPattern), 1);
  const auto sum_of = [&](size_t weight) {
    const std::vector<float> values = network->weights[weight].ToDense().values;
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  EXPECT_NEAR(sum_of(0), 2.321646, 1e-6);
  EXPECT_NEAR(sum_of(3), -0.341325, 1e-6);
  EXPECT_EQ(sum_of(6), 42);
  EXPECT_EQ(network->weights[9].bias.size(), 40u);
  EXPECT_TRUE(ReadPacked(Encode(*network)).ok()) << "written anew, in this version";
}

TEST(PackedReader, TruncatedAnywhereIsOneError) {
  const Bytes file = Encode(SmallNetwork());
  for (size_t size = 0; size < file.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees a read past it.
    const Bytes prefix(file.begin(), file.begin() + static_cast<int64_t>(size));
    const StatusOr<Network> network = ReadPacked(prefix);
    ASSERT_EQ(network.status().code(), StatusCode::kInvalidArgument) << size << " bytes";
    ASSERT_FALSE(network.status().message().empty());
  }
}

TEST(PackedReader, AnyFlippedBitIsAnError) {
  Bytes file = Encode(SmallNetwork());
  for (size_t i = 0; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      const std::byte flip{static_cast<unsigned char>(1 << bit)};
      file[i] ^= flip;
      ASSERT_FALSE(ReadPacked(file).ok()) << "bit " << bit << " of byte " << i;
      file[i] ^= flip;
    }
  }
  EXPECT_TRUE(ReadPacked(file).ok());
}

// Whoever writes a hostile file also writes its checksum.
TEST(PackedReader, AnyChangedHeaderWithARightChecksumIsRefusedOrValid) {
  const Bytes file = Encode(SmallNetwork());
  const size_t header_end = sizeof(PackedPrefix) + TakenApart(file).prefix.header_bytes;
  for (size_t i = sizeof(PackedPrefix); i < header_end; ++i) {
    for (const std::byte flip : {std::byte{0x01}, std::byte{0x10}, std::byte{0xFF}}) {
      Bytes changed = file;
      changed[i] ^= flip;
      PackedPrefix prefix;
      std::memcpy(&prefix, changed.data(), sizeof(prefix));
      const auto header = std::span<const std::byte>(changed).subspan(sizeof(prefix), prefix.header_bytes);
      prefix.header_checksum = HeaderChecksum(prefix, header);
      std::memcpy(changed.data(), &prefix, sizeof(prefix));
      const StatusOr<Network> network = ReadPacked(changed);
      ASSERT_TRUE(!network.ok() || network->Validate().ok()) << "byte " << i;
    }
  }
}

TEST(PackedReader, TrailingBytesAreRefused) {
  Bytes file = Encode(SmallNetwork());
  file.push_back(std::byte{0});
  EXPECT_THAT(ErrorOf(file), HasSubstr("1 bytes after its end"));
}

TEST(PackedReader, SaysWhatIsNotAPackedModel) {
  const std::string text = "these are not the weights you are looking for";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_THAT(ErrorOf(Bytes(bytes.begin(), bytes.end())), HasSubstr("not a packed model"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("not a packed model"));
}

TEST(PackedReader, NewerVersionsAreRefusedWithTheWayOut) {
  TakenApart parts(Encode(SmallNetwork()));
  parts.prefix.version = kPackedVersion + 1;
  const Status status = ReadPacked(parts.PutTogether()).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("format version 9; this program reads up to version 8"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("pack the model again"));
}

TEST(PackedReader, HugeHeaderIsRefusedBeforeItIsRead) {
  Bytes file = Encode(SmallNetwork());
  const uint32_t huge = 0xFFFFFFFF;
  std::memcpy(file.data() + offsetof(PackedPrefix, header_bytes), &huge, sizeof(huge));
  EXPECT_THAT(ErrorOf(file), HasSubstr("claims a header of 4294967295 bytes"));
}

TEST(PackedReader, HeaderBeyondTheFileIsTruncation) {
  Bytes file = Encode(SmallNetwork());
  const uint32_t beyond = static_cast<uint32_t>(file.size());
  std::memcpy(file.data() + offsetof(PackedPrefix, header_bytes), &beyond, sizeof(beyond));
  EXPECT_THAT(ErrorOf(file), HasSubstr("truncated"));
}

TEST(PackedReader, SaysWhereAFileIsRatherAnOnnxModel) {
  const Bytes onnx = {std::byte{0x08}, std::byte{0x08}, std::byte{0x3a}}, text = {std::byte{'a'}};
  EXPECT_THAT(ErrorOf(onnx), HasSubstr("if it is an ONNX model, let its name end in .onnx"));
  EXPECT_THAT(ErrorOf(text), Not(HasSubstr("ONNX")));
}

TEST(PackedReader, HeaderThatIsNoProtobufIsRefused) {
  Bytes file(sizeof(PackedPrefix));
  const std::string text = "\xff\xff\xff";
  PackedPrefix prefix;
  prefix.header_bytes = static_cast<uint32_t>(text.size());
  prefix.header_checksum = HeaderChecksum(prefix, std::as_bytes(std::span(text)));
  std::memcpy(file.data(), &prefix, sizeof(prefix));
  for (char c : text) file.push_back(static_cast<std::byte>(c));
  EXPECT_THAT(ErrorOf(file), HasSubstr("does not parse"));
}

TEST(PackedReader, EmptyHeaderIsNoNetwork) {
  TakenApart parts(Encode(SmallNetwork()));
  parts.header.Clear();
  parts.arrays.clear();
  EXPECT_FALSE(ReadPacked(parts.PutTogether()).ok());
}

struct Breakage {
  const char* name;
  std::function<void(TakenApart&)> break_it;
  const char* message_part;
};

class PackedReaderBreakage : public ::testing::TestWithParam<Breakage> {};

TEST_P(PackedReaderBreakage, IsNamed) {
  EXPECT_THAT(ErrorAfter(GetParam().break_it), HasSubstr(GetParam().message_part));
}

const Breakage kBreakages[] = {
    // Where arrays lie.
    {"Unaligned", [](TakenApart& p) { Values(p).set_offset(Values(p).offset() + 4); },
     "weight 1: its values begin at offset"},
    {"BeyondTheFile", [](TakenApart& p) { Values(p).set_bytes(uint64_t{1} << 40); },
     "weight 1: its values (1099511627776 bytes"},
    {"OffsetOverflows", [](TakenApart& p) { Values(p).set_offset(~uint64_t{63}); }, "go beyond the end of the file"},
    {"SizeOverflows", [](TakenApart& p) { Values(p).set_bytes(~uint64_t{0}); }, "go beyond the end of the file"},
    {"Overlap", [](TakenApart& p) { Values(p).set_offset(RowOffsets(p).offset()); }, "overlap what stands before them"},
    {"BytesOfNothing", [](TakenApart& p) { p.header.mutable_weights(0)->clear_parts(); }, "belong to nothing"},
    {"WrongChecksum", [](TakenApart& p) { Values(p).set_checksum(1); },
     "weight 1: its values do not match their checksum"},
    {"ZerosThatFall",
     [](TakenApart& p) {
       packed::Zeros& zeros = *p.header.mutable_values(1)->mutable_zeros();
       zeros.set_runs(0.5);
       zeros.set_elements(0.25);
     },
     "its shares of empty channels, planes and runs and of zeros, 0, 0, 0.5 and 0.25, do not rise from 0 to 1"},
    {"ZerosAboveAll", [](TakenApart& p) { p.header.mutable_values(1)->mutable_zeros()->set_elements(1.5); },
     "do not rise from 0 to 1"},
    {"ZerosThatAreNoNumber",
     [](TakenApart& p) { p.header.mutable_values(1)->mutable_zeros()->set_elements(std::nan("")); },
     "do not rise from 0 to 1"},
    // How matrices are encoded.
    {"HugeDenseSize", [](TakenApart& p) { Dense(p).set_rows(int64_t{1} << 40); }, "weights above"},
    {"DenseSizeOverflows",
     [](TakenApart& p) {
       Dense(p).set_rows(int64_t{1} << 40);
       Dense(p).set_cols(int64_t{1} << 40);
     },
     "is impossible"},
    {"NegativeRows", [](TakenApart& p) { Dense(p).set_rows(-1); }, "weight 0 of -1 x"},
    {"DenseWrongCount", [](TakenApart& p) { Dense(p).set_rows(Dense(p).rows() + 1); }, "weight 0: dense matrix of 17"},
    {"WrongElementType", [](TakenApart& p) { ColIndices(p).set_type(packed::ELEMENT_TYPE_UINT32); },
     "weight 1: its column indices have element type 3 instead of ELEMENT_TYPE_UINT16"},
    {"MissingArray", [](TakenApart& p) { Values(p).set_type(packed::ELEMENT_TYPE_UNSPECIFIED); },
     "weight 1: its values have element type 0"},
    {"WholeValuesOfNoScale", [](TakenApart& p) { Values(p).set_type(packed::ELEMENT_TYPE_INT8); },
     "weight 1: its values have element type 5 instead of ELEMENT_TYPE_FLOAT32"},
    {"WholeValuesOfManyZeroPoints",
     [](TakenApart& p) {
       Values(p).set_type(packed::ELEMENT_TYPE_INT8);
       packed::Quantisation& quantisation = *p.header.mutable_weights(1)->mutable_quantisation();
       quantisation.set_datatype("INT8");
       for (const int zero_point : {0, 1}) quantisation.add_zero_points(zero_point);
     },
     "weight 1: its values are whole numbers, with a zero point for each row"},
    {"MissingPart", [](TakenApart& p) { Csr(p).mutable_arrays(2)->set_name("weights"); },
     "weight 1: its values are missing"},
    {"UnknownPart", [](TakenApart& p) { Csr(p).add_scalars()->set_name("depth"); },
     "weight 1: it has parts that no matrix of its format has"},
    {"ControlCharacterInPart", [](TakenApart& p) { Csr(p).mutable_arrays(0)->set_name("row\noffsets"); },
     "name of an array has control characters"},
    {"UnknownFormat", [](TakenApart& p) { Csr(p).set_format("csc"); },
     "weight 1: it is in no format that this program"},
    {"NoFormat", [](TakenApart& p) { p.header.add_weights()->set_rows(1); }, "in no format that this program knows"},
    {"CsrUnsorted",
     [](TakenApart& p) {
       // The matrix has 16 columns; the first row of two entries or more gets them the wrong way round.
       const auto offsets = p.BytesOf(RowOffsets(p));
       for (size_t row = 0; row + 1 < offsets.size() / 4; ++row) {
         uint32_t ends[2];
         std::memcpy(ends, offsets.data() + row * 4, sizeof(ends));
         if (ends[1] - ends[0] < 2) continue;
         p.Set<uint16_t>(ColIndices(p), ends[0], 15);
         return p.Set<uint16_t>(ColIndices(p), ends[0] + 1, 0);
       }
     },
     "column 0 does not come after column 15"},
    {"CsrColumnOutOfRange", [](TakenApart& p) { p.Set<uint16_t>(ColIndices(p), 0, 16); }, "column 16 is not below 16"},
    {"CsrOffsetsFall", [](TakenApart& p) { p.Set<uint32_t>(RowOffsets(p), 1, 1000); }, "is beyond the next row's"},
    {"CsrOffsetsEndEarly", [](TakenApart& p) { p.Set<uint32_t>(RowOffsets(p), RowOffsets(p).bytes() / 4 - 1, 1); },
     "row offsets run from 0 to 1"},
    {"CsrOffsetsStartLate", [](TakenApart& p) { p.Set<uint32_t>(RowOffsets(p), 0, 1); }, "row offsets run from 1 to"},
    {"CsrWrongRows", [](TakenApart& p) { p.header.mutable_weights(1)->set_rows(p.header.weights(1).rows() + 1); },
     "row offsets, not"},
    {"CsrFewerColumnsThanValues",
     [](TakenApart& p) {
       packed::Array& columns = ColIndices(p);
       columns.set_bytes(columns.bytes() - 2);
       columns.set_checksum(Checksum(p.BytesOf(columns)));
       p.arrays[columns.offset() + columns.bytes()] = std::byte{0};
       p.arrays[columns.offset() + columns.bytes() + 1] = std::byte{0};
     },
     "the counts must be equal"},
    {"PartOfAnElement",
     [](TakenApart& p) {
       packed::Array& values = Values(p);
       values.set_bytes(values.bytes() - 1);
       values.set_checksum(Checksum(p.BytesOf(values)));
       p.arrays[values.offset() + values.bytes()] = std::byte{0};
     },
     "not a multiple of 4"},
    // What the network says.
    {"UnknownLayerKind",
     [](TakenApart& p) { p.header.mutable_layers(0)->set_kind(static_cast<packed::LayerKind>(99)); },
     "its kind 99 is not known"},
    {"UnknownFunction",
     [](TakenApart& p) {
       for (packed::Layer& layer : *p.header.mutable_layers()) {
         if (layer.has_function()) layer.mutable_function()->set_kind(static_cast<packed::FunctionKind>(99));
       }
     },
     "its function 99 is not known"},
    {"LayerWithoutFunction",
     [](TakenApart& p) {
       for (packed::Layer& layer : *p.header.mutable_layers()) layer.clear_function();
     },
     "its function 0 is not known"},
    {"LayerWithoutKind", [](TakenApart& p) { p.header.mutable_layers(0)->clear_kind(); }, "its kind 0 is not known"},
    {"UnknownDatatype", [](TakenApart& p) { p.header.mutable_inputs(0)->set_datatype("FP31"); },
     "'image': its datatype is not known"},
    {"ControlCharacterInName", [](TakenApart& p) { p.header.mutable_layers(0)->set_name("a\nb"); },
     "name of a layer has control characters"},
    {"WeightOfNobody", [](TakenApart& p) { p.header.mutable_layers(0)->set_weight(1000); },
     "weight 1000, which does not exist"},
    {"CycleOfLayers", [](TakenApart& p) { p.header.mutable_layers(0)->set_inputs(0, p.header.layers(0).output()); },
     "before it is made"},
};

INSTANTIATE_TEST_SUITE_P(All, PackedReaderBreakage, ::testing::ValuesIn(kBreakages),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace swizzle
