#include "client/npy.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An .npy file of format version 1 with this header dictionary and data.
std::string File(const std::string& header, const std::string& data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return bytes + header + data;
}

std::string ErrorOf(const std::string& bytes) {
  const absl::StatusOr<Tensor> tensor = ParseNpy(bytes);
  return tensor.ok() ? "no error" : std::string(tensor.status().message());
}

constexpr char kTwoFloats[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";

TEST(NpyTest, ReadsWhatNumPyWrites) {
  const auto tensor =
      ParseNpy(File("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }     \n", {"\1\0\0\0\2\0\0\0", 8}));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->datatype, "INT32");
  EXPECT_THAT(tensor->shape, ElementsAre(1, 2));
  EXPECT_THAT(tensor->Values<int32_t>(), ElementsAre(1, 2));
}

TEST(NpyTest, ReadsScalarsAndBytesOfAnyOrder) {
  const auto tensor = ParseNpy(File("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "\x07"));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->shape, IsEmpty());
  EXPECT_THAT(tensor->Values<uint8_t>(), ElementsAre(7));
}

TEST(NpyTest, ReadsVersion2) {
  std::string bytes = File(kTwoFloats, std::string(8, '\0'));
  bytes[6] = '\2';
  bytes.insert(10, 2, '\0');
  EXPECT_TRUE(ParseNpy(bytes).ok());
}

class NpyRoundTrip : public ::testing::TestWithParam<const char*> {};

TEST_P(NpyRoundTrip, KeepsDatatypeShapeAndData) {
  const Tensor tensor{"", GetParam(), {2, 0, 3}, ""};
  const Tensor vector{"", GetParam(), {3}, std::string(3 * DatatypeBytes(GetParam()), '\1')};
  for (const Tensor& original : {tensor, vector}) {
    const auto bytes = FormatNpy(original);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ((bytes->size() - original.data.size()) % 64, 0u);
    const auto read = ParseNpy(*bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->datatype, original.datatype);
    EXPECT_EQ(read->shape, original.shape);
    EXPECT_EQ(read->data, original.data);
  }
}

INSTANTIATE_TEST_SUITE_P(Datatypes, NpyRoundTrip,
                         ::testing::Values("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32",
                                           "INT64", "FP16", "FP32", "FP64"));

TEST(NpyTest, RefusesWhatNumPyHasNoTypeFor) {
  EXPECT_EQ(FormatNpy({"x", "BF16", {1}, "ab"}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(FormatNpy({"x", "FP32", {1}, "ab"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NpyTest, SurvivesEveryTruncation) {
  const std::string whole = File(kTwoFloats, std::string(8, '\0'));
  ASSERT_TRUE(ParseNpy(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(ParseNpy(whole.substr(0, size)).ok()) << size;
  EXPECT_FALSE(ParseNpy(whole + "x").ok());
}

TEST(NpyTest, SaysWhatIsWrong) {
  const std::string data(8, '\0');
  EXPECT_THAT(ErrorOf("hello, world"), HasSubstr("does not begin as one"));
  EXPECT_THAT(ErrorOf(File("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", data)), HasSubstr("'>f4'"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", data)), HasSubstr("'<c8'"));
  EXPECT_THAT(ErrorOf(File("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", data)), HasSubstr("'|O'"));
  EXPECT_THAT(ErrorOf(File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", data)),
              HasSubstr("records"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", data)), HasSubstr("Fortran"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", data)), HasSubstr("needs 12"));
  EXPECT_THAT(ErrorOf(File("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", data)),
              HasSubstr("too many elements"));
  EXPECT_FALSE(
      ParseNpy(File("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", data)).ok());
  EXPECT_FALSE(ParseNpy(File("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", data)).ok());
  EXPECT_FALSE(ParseNpy(File("{'descr': '<f4', 'shape': (2,), }", data)).ok());
  EXPECT_FALSE(ParseNpy(File("{}", data)).ok());
  EXPECT_FALSE(ParseNpy(File("{'x': 1}", data)).ok());
}

TEST(NpyTest, NamesTheFile) {
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "npy_test_two.npy";
  const float values[] = {1.5f, -2.0f};
  ASSERT_TRUE(WriteNpy(file, MakeTensor<float>("x", "FP32", {2}, values)).ok());
  const auto read = ReadNpy(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->Values<float>(), ElementsAre(1.5f, -2.0f));
  std::filesystem::resize_file(file, 90);
  EXPECT_THAT(std::string(ReadNpy(file).status().message()), HasSubstr("npy_test_two.npy: "));
  std::filesystem::remove(file);
  EXPECT_EQ(ReadNpy(file).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace swizzle::client
