#include "model_loader/files/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/npz_writer.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::MakeNpz;

// numpy.savez('arrays.npz', **{'layer/weight': numpy.arange(6, dtype='<f4').reshape(2, 3),
//                              'whole': numpy.array([1, -2, 3], '<i8')}), and savez_compressed('compressed.npz',
//                              a=...).
const std::string kFolder = SWIZZLE_SOURCE_DIR "/tests/testdata/npz/";

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Contents(const std::string& file) {
  std::ostringstream contents;
  contents << std::ifstream(file, std::ios::binary).rdbuf();
  return contents.str();
}

void ExpectArrays(const NpyArrays& arrays) {
  ASSERT_EQ(arrays.size(), 2u);
  const NpyArray& floats = arrays.at("layer/weight");
  EXPECT_EQ(floats.shape, (Shape{2, 3}));
  ASSERT_EQ(floats.bytes.size(), 6 * sizeof(float));
  float values[6];
  std::memcpy(values, floats.bytes.data(), sizeof(values));
  EXPECT_THAT(values, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(arrays.at("whole").dtype, DType::kInt64);
}

TEST(Npz, ReadsWhatNumPyWrites) {
  const auto arrays = ReadNpz(kFolder + "arrays.npz");
  ASSERT_THAT(arrays, IsOk());
  ExpectArrays(*arrays);
}

TEST(Npz, CompressedArraysAreRefusedWithTheFix) {
  EXPECT_THAT(ReadNpz(kFolder + "compressed.npz"),
              IsError(StatusCode::kUnimplemented, "array 'a': it is compressed; save it with numpy.savez"));
}

TEST(Npz, NoPrefixIsAnArchive) {
  const std::string file = Contents(kFolder + "arrays.npz");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseNpz(BytesOf(file.substr(0, size))).ok()) << size;
  }
}

// Whatever byte is another, the arrays are as they were or there is an error.
TEST(Npz, DamageIsNoticedOrHarmless) {
  const std::string file = Contents(kFolder + "arrays.npz");
  int noticed = 0;
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    const auto arrays = ParseNpz(BytesOf(damaged));
    noticed += arrays.ok() ? 0 : 1;
    if (arrays.ok() && arrays->contains("layer/weight") && arrays->contains("whole")) ExpectArrays(*arrays);
  }
  EXPECT_GT(noticed, 300);
}

TEST(Npz, NamesTheArrayThatIsWrong) {
  const std::vector<float> values = {1, 2};
  std::string file = MakeNpz({{"a", {DType::kFloat32, {2}, std::as_bytes(std::span(values))}}});
  ASSERT_THAT(ParseNpz(BytesOf(file)), IsOk());
  const size_t last = file.find("PK\x01\x02") - 1;
  file[last] = static_cast<char>(file[last] ^ 1);
  EXPECT_THAT(ParseNpz(BytesOf(file)), IsError(StatusCode::kInvalidArgument, "'a': its checksum is wrong"));
}

// An array of 4 KB under two names would else become 8 KB in memory; of 1 GB under 65,000 names, more than there is.
TEST(Npz, NamesShareNoBytes) {
  const std::vector<float> values(1000);
  const std::string file = MakeNpz({{"a", {DType::kFloat32, {1000}, std::as_bytes(std::span(values))}}});
  const size_t begin = file.find("PK\x01\x02"), end = file.find("PK\x05\x06");
  const std::string entry = file.substr(begin, end - begin);
  std::string twice = file.substr(0, end) + entry + file.substr(end);
  twice[end + entry.find("a.npy")] = 'b';
  twice[twice.find("PK\x05\x06") + 10] = 2;  // entries
  EXPECT_THAT(ParseNpz(BytesOf(twice)),
              IsError(StatusCode::kInvalidArgument, "its arrays are together longer than the file"));
}

}  // namespace
}  // namespace swizzle
