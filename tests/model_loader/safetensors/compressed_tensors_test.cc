#include "model_loader/safetensors/compressed_tensors.h"

#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/float_tensor.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::Floats;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;

constexpr int64_t kPlenty = 1 << 20;

Tensor Bytes(Shape shape, const std::vector<uint8_t>& values) {
  Tensor tensor{DType::kUint8, std::move(shape), {}};
  for (const uint8_t value : values) tensor.bytes.push_back(std::byte{value});
  return tensor;
}

Tensor Int64s(Shape shape, const std::vector<int64_t>& values) { return Tensor::Int64s(std::move(shape), values); }

// The example of the header.
TensorMap Bitmask() {
  return {{"p.shape", Int64s({2}, {3, 4})},
          {"p.bitmask", Bytes({3, 1}, {2, 9, 0})},
          {"p.row_offsets", Int64s({3}, {0, 1, 3})},
          {"p.compressed", Floats({3}, {5, 6, 7})}};
}

// [2, 12]: a last byte of four columns, and a zero that is stored.
TensorMap TwoFour() {
  return {{"p.shape", Int64s({2, 1}, {2, 12})},
          {"p.bitmask", Bytes({2, 2}, {0x53, 0x0C, 0xA6, 0x09})},
          {"p.compressed", Floats({2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 0, 10, 11, 12})}};
}

TEST(CompressedTensors, Decompresses) {
  TensorMap tensors = Bitmask();
  tensors.emplace("p.bias", Floats({3}, {1, 2, 3}));
  ASSERT_THAT(Decompress(SparsityFormat::kBitmask, kPlenty, tensors), IsOk());
  EXPECT_EQ(tensors, (TensorMap{{"p.bias", Floats({3}, {1, 2, 3})},
                                {"p.weight", Floats({3, 4}, {0, 5, 0, 0, 6, 0, 0, 7, 0, 0, 0, 0})}}));
  tensors = TwoFour();
  ASSERT_THAT(Decompress(SparsityFormat::kTwoFourBitmask, kPlenty, tensors), IsOk());
  EXPECT_EQ(tensors, (TensorMap{{"p.weight", Floats({2, 12}, {1, 2, 0, 0, 3, 0, 4, 0,  0,  0, 5, 6,  //
                                                              0, 7, 8, 0, 0, 0, 0, 10, 11, 0, 0, 12})}}));
}

TEST(CompressedTensors, DecompressesOtherRanksAndTypes) {
  TensorMap vector = {
      {"p.shape", Int64s({1}, {10})},
      {"p.bitmask", Bytes({2}, {0x80, 0x02})},
      {"p.row_offsets", Int64s({}, {0})},
      {"p.compressed", {DType::kBFloat16, {2}, {std::byte{0x80}, std::byte{0x3F}, std::byte{0}, std::byte{0x40}}}}};
  ASSERT_THAT(Decompress(SparsityFormat::kBitmask, kPlenty, vector), IsOk());
  EXPECT_EQ(vector.at("p.weight"), Floats({10}, {0, 0, 0, 0, 0, 0, 0, 1, 0, 2}));
  TensorMap whole = Bitmask();
  whole["p.compressed"] = {DType::kInt8, {3}, {std::byte{5}, std::byte{0x80}, std::byte{7}}};
  ASSERT_THAT(Decompress(SparsityFormat::kBitmask, kPlenty, whole), IsOk());
  Tensor bytes = Bytes({3, 4}, {0, 5, 0, 0, 0x80, 0, 0, 7, 0, 0, 0, 0});
  bytes.dtype = DType::kInt8;
  EXPECT_EQ(whole.at("p.weight"), bytes);
  // Offsets count along dimension 0: [1, 1] of rows (0, 0) and (0, 1), then their own.
  TensorMap cube = {{"p.shape", Int64s({3}, {2, 2, 2})},
                    {"p.bitmask", Bytes({2, 2, 1}, {3, 1, 2, 0})},
                    {"p.row_offsets", Int64s({2, 2}, {0, 0, 2, 1})},
                    {"p.compressed", Floats({4}, {1, 2, 3, 4})}};
  ASSERT_THAT(Decompress(SparsityFormat::kBitmask, kPlenty, cube), IsOk());
  EXPECT_EQ(cube.at("p.weight"), Floats({2, 2, 2}, {1, 2, 3, 0, 0, 4, 0, 0}));
}

TEST(CompressedTensors, KeepsItsLimit) {
  TensorMap tensors = Bitmask();
  for (const auto& [name, tensor] : Bitmask()) tensors.emplace("q" + name.substr(1), tensor);
  TensorMap same = tensors;
  EXPECT_THAT(Decompress(SparsityFormat::kBitmask, 96, tensors), IsOk());
  EXPECT_THAT(
      Decompress(SparsityFormat::kBitmask, 95, same),
      IsError(kInvalid, "'q.weight' has 12 elements when dense, which takes the checkpoint above its limit; 47"));
}

struct CompressedFault {
  const char* name;
  SparsityFormat format;
  std::function<void(TensorMap&)> spoil;
  const char* message;
  StatusCode code = kInvalid;
};

void PrintTo(const CompressedFault& fault, std::ostream* out) { *out << fault.name; }

class CompressedTensorsFaultTest : public ::testing::TestWithParam<CompressedFault> {};

TEST_P(CompressedTensorsFaultTest, IsRefused) {
  const CompressedFault& fault = GetParam();
  TensorMap tensors = fault.format == SparsityFormat::kTwoFourBitmask ? TwoFour() : Bitmask();
  fault.spoil(tensors);
  EXPECT_THAT(Decompress(fault.format, kPlenty, tensors), IsError(fault.code, fault.message));
}

// `tensor` in place of, or beside, the others.
CompressedFault With(const char* name, SparsityFormat format, const std::string& key, Tensor tensor,
                     const char* message) {
  return {name, format, [=](TensorMap& tensors) { tensors[key] = tensor; }, message};
}

CompressedFault Without(const char* name, SparsityFormat format, const std::string& key, const char* message) {
  return {name, format, [=](TensorMap& tensors) { tensors.erase(key); }, message};
}

constexpr SparsityFormat kMask = SparsityFormat::kBitmask, kTwo = SparsityFormat::kTwoFourBitmask;

const CompressedFault kCompressedFaults[] = {
    Without("NoShape", kMask, "p.shape", "compressed weight 'p.weight' lacks its tensor 'p.shape'"),
    Without("NoOffsets", kMask, "p.row_offsets", "lacks its tensor 'p.row_offsets'"),
    Without("NoCompressed", kMask, "p.compressed", "lacks its tensor 'p.compressed'"),
    Without("NoBitmask", kMask, "p.bitmask", "'p.compressed', a part of a compressed weight, without the other parts"),
    With("AndDense", kMask, "p.weight", Floats({1}, {1}), "'p.weight' both compressed and dense"),
    With("ShapeOfFloats", kMask, "p.shape", Floats({2}, {3, 4}), "its '.shape' is FP32[2]; it must be INT64[rank]"),
    With("ShapeInAColumn", kMask, "p.shape", Int64s({2, 1}, {3, 4}), "it must be INT64[rank]"),
    With("ShapeEmpty", kMask, "p.shape", Int64s({0}, {}), "it needs a dimension"),
    With("ShapeNegative", kMask, "p.shape", Int64s({2}, {3, -4}), "dimensions are at least 1"),
    With("ShapeZero", kMask, "p.shape", Int64s({2}, {0, 4}), "dimensions are at least 1"),
    With("ShapeOverflows", kMask, "p.shape", Int64s({3}, {int64_t{1} << 40, 1 << 20, 1 << 20}), "fit in 64 bits"),
    With("ShapeTooLarge", kMask, "p.shape", Int64s({2}, {1 << 20, 1 << 20}), "above its limit; 1048576 bytes are left"),
    With("MaskShort", kMask, "p.bitmask", Bytes({2, 1}, {2, 9}), "is UINT8[2,1]; it must be UINT8[3,1]"),
    With("MaskWide", kMask, "p.bitmask", Bytes({3, 2}, {2, 0, 9, 0, 0, 0}), "it must be UINT8[3,1]"),
    With("MaskOfInt64", kMask, "p.bitmask", Int64s({3, 1}, {2, 9, 0}), "is INT64[3,1]; it must be UINT8[3,1]"),
    With("MaskBeyondTheRow", kMask, "p.bitmask", Bytes({3, 1}, {2, 0x19, 0}), "row 1 has bits beyond its 4 columns"),
    With("OffsetsShort", kMask, "p.row_offsets", Int64s({2}, {0, 1}), "is INT64[2]; it must be INT64[3]"),
    With("OffsetsWithTheTotal", kMask, "p.row_offsets", Int64s({4}, {0, 1, 3, 3}), "it must be INT64[3]"),
    With("OffsetWrong", kMask, "p.row_offsets", Int64s({3}, {0, 2, 3}), "row 1 is 2, but the bitmask says 1"),
    With("OffsetNegative", kMask, "p.row_offsets", Int64s({3}, {-1, 1, 3}), "row 0 is -1, but the bitmask says 0"),
    With("ValuesFew", kMask, "p.compressed", Floats({2}, {5, 6}), "is [2], but by its bitmask it must be [3]"),
    With("ValuesMany", kMask, "p.compressed", Floats({4}, {5, 6, 7, 8}), "is [4], but by its bitmask it must be [3]"),
    With("ValuesInRows", kMask, "p.compressed", Floats({3, 1}, {5, 6, 7}), "is [3,1], but by its bitmask"),
    {"ValuesInt64", kMask, [](TensorMap& tensors) { tensors["p.compressed"] = Int64s({3}, {5, 6, 7}); },
     "compressed weight 'p.weight' is INT64; a floating-point type is needed", kUnsupported},
    With("TwoShapeInARow", kTwo, "p.shape", Int64s({2}, {2, 12}), "is INT64[2]; it must be INT64[2,1]"),
    With("TwoShapeOfThree", kTwo, "p.shape", Int64s({3, 1}, {1, 2, 12}), "only matrices have this format"),
    With("TwoShapeOfOne", kTwo, "p.shape", Int64s({1, 1}, {12}), "only matrices have this format"),
    With("TwoOffsets", kTwo, "p.row_offsets", Int64s({2}, {0, 6}), "'p.row_offsets', a part of a compressed weight"),
    With("TwoThreeBits", kTwo, "p.bitmask", Bytes({2, 2}, {0x73, 0x0C, 0xA6, 0x09}),
         "row 0 has 3 bits of the four columns from 4 on; it must have 2"),
    With("TwoOneBit", kTwo, "p.bitmask", Bytes({2, 2}, {0x53, 0x0C, 0xA6, 0x01}),
         "row 1 has 1 bits of the four columns from 8 on"),
    With("TwoMaskBeyondTheRow", kTwo, "p.bitmask", Bytes({2, 2}, {0x53, 0x0C, 0xA6, 0x39}), "bits beyond its 12"),
    With("TwoValuesFew", kTwo, "p.compressed", Floats({2, 5}, std::vector<float>(10)), "it must be [2,6]"),
    With("TwoValuesFlat", kTwo, "p.compressed", Floats({12}, std::vector<float>(12)), "is [12], but by its bitmask"),
    {"TwoColumnsOdd", kTwo,
     [](TensorMap& tensors) {
       tensors["p.shape"] = Int64s({2, 1}, {2, 10});
       tensors["p.bitmask"] = Bytes({2, 2}, {0x53, 0x03, 0xA6, 0x03});
     },
     "has 10 columns, which is no multiple of 4"},
    {"DenseByTheConfig", SparsityFormat::kDense, [](TensorMap&) {}, "but config.json has no sparsity_config"},
};

INSTANTIATE_TEST_SUITE_P(Faults, CompressedTensorsFaultTest, ::testing::ValuesIn(kCompressedFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace swizzle
