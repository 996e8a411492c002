#include "model_loader/files/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;

constexpr DType kTypes[] = {DType::kBool,   DType::kUint8,   DType::kUint16,  DType::kUint32,
                            DType::kUint64, DType::kInt8,    DType::kInt16,   DType::kInt32,
                            DType::kInt64,  DType::kFloat16, DType::kFloat32, DType::kFloat64};

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// A file of version `major` with this header text and data.
std::string File(const std::string& header, const std::string& data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += major;
  file += '\0';
  uint32_t length = static_cast<uint32_t>(header.size());
  file.append(reinterpret_cast<const char*>(&length), major == 1 ? 2 : 4);
  return file + header + data;
}

std::string Error(const std::string& file) {
  const StatusOr<NpyArray> array = ParseNpy(Bytes(file));
  return array.ok() ? "it was read without an error" : std::string(array.status().message());
}

TEST(Npy, RoundTripOfEveryType) {
  for (const DType dtype : kTypes) {
    SCOPED_TRACE(DTypeName(dtype));
    const std::string data(6 * ElementBytes(dtype), '\1');
    const auto file = FormatNpy({dtype, {2, 3}, Bytes(data)});
    ASSERT_TRUE(file.ok()) << file.status();
    const auto array = ParseNpy(*file);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->dtype, dtype);
    EXPECT_EQ(array->shape, (Shape{2, 3}));
    EXPECT_EQ(Text(array->bytes), data);
  }
}

TEST(Npy, RoundTripOfScalarsVectorsAndEmptyArrays) {
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{0, 7}, Shape{1, 1, 1, 2}}) {
    const std::string data(static_cast<size_t>(*ElementCount(shape)) * 4, 'x');
    const auto array = ParseNpy(*FormatNpy({DType::kFloat32, shape, Bytes(data)}));
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(Text(array->bytes), data);
  }
}

// What numpy.save writes for numpy.arange(3, dtype='<i2'), byte for byte.
TEST(Npy, WritesWhatNumPyWrites) {
  const std::string data("\0\0\1\0\2\0", 6);
  const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  const std::string expected = File(header + std::string(117 - header.size(), ' ') + "\n", data);
  ASSERT_EQ(expected.size(), 128 + data.size());
  EXPECT_EQ(Text(*FormatNpy({DType::kInt16, {3}, Bytes(data)})), expected);
}

TEST(Npy, ReadsVersionTwoAndKeysInAnyOrder) {
  const auto array = ParseNpy(Bytes(File("{'shape':(1,2),'descr':'<f4','fortran_order':False}\n", "abcdefgh", 2)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->shape, (Shape{1, 2}));
}

TEST(Npy, AVectorHasNoOrder) {
  EXPECT_TRUE(ParseNpy(Bytes(File("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "abcd"))).ok());
}

TEST(Npy, TruncatedAnywhereIsOneError) {
  const std::string file = Text(*FormatNpy({DType::kInt16, {3}, Bytes("abcdef")}));
  for (size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> prefix(Bytes(file).begin(), Bytes(file).begin() + static_cast<int64_t>(size));
    ASSERT_EQ(ParseNpy(prefix).status().code(), StatusCode::kInvalidArgument) << size;
  }
}

TEST(Npy, MalformedFilesAreNamed) {
  const char* kNotADictionary = "not a dictionary of descr, fortran_order and shape";
  EXPECT_THAT(Error("PK\3\4 this is an .npz"), HasSubstr("NumPy's signature"));
  EXPECT_THAT(Error(File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "abcd", 3)),
              HasSubstr("version 3"));
  EXPECT_THAT(Error(File("", "")), HasSubstr(kNotADictionary));
  EXPECT_THAT(Error(File("{}", "")), HasSubstr(kNotADictionary));
  EXPECT_THAT(Error(File("{'descr': '<f4', 'fortran_order': False}", "")), HasSubstr(kNotADictionary));
  EXPECT_THAT(Error(File("{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", "")), HasSubstr(kNotADictionary));
  EXPECT_THAT(Error(File("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "")), HasSubstr(kNotADictionary));
  EXPECT_THAT(Error(File("{'descr': '<f4', 'fortran_order': False, 'shape': (1", "")), HasSubstr(kNotADictionary));
  EXPECT_THAT(Error(File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "abcd")),
              HasSubstr(kNotADictionary));
}

TEST(Npy, WhatItDoesNotReadNamesTheFix) {
  EXPECT_THAT(Error(File("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "abcd")),
              HasSubstr("astype('<f4')"));
  EXPECT_THAT(Error(File("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", "abcd")),
              HasSubstr("astype('<f4')"));
  EXPECT_THAT(Error(File("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}", "abcd")),
              HasSubstr("ascontiguousarray"));
}

TEST(Npy, DeclaredSizesAreComparedBeforeTheyAreBelieved) {
  const auto header = [](const std::string& shape) {
    return "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}";
  };
  EXPECT_THAT(Error(File(header("(1000000000000,)"), "abcd")), HasSubstr("take other than that"));
  EXPECT_THAT(Error(File(header("(4611686018427387904, 2)"), "")), HasSubstr("64 bits"));
  EXPECT_THAT(Error(File(header("(2305843009213693952,)"), "")), HasSubstr("take other than that"));
  EXPECT_THAT(Error(File(header("(99999999999999999999,)"), "")), HasSubstr("not a dictionary"));
  std::string ranks = "(";
  for (int i = 0; i < 40; ++i) ranks += "1,";
  EXPECT_THAT(Error(File(header(ranks + ")"), "abcdefgh")), HasSubstr("not a dictionary"));
}

TEST(Npy, RefusesTypesThatNumPyLacks) {
  EXPECT_EQ(FormatNpy({DType::kBFloat16, {1}, Bytes("ab")}).status().code(), StatusCode::kUnimplemented);
}

TEST(Npy, FilesRoundTripAndErrorsNameThem) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpy(folder / "x.npy", {DType::kInt16, {1}, Bytes("ab")}).ok());
  const auto array = ReadNpy(folder / "x.npy");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(Text(array->bytes), "ab");
  const Status missing = ReadNpy(folder / "y.npy").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(std::string(missing.message()), (folder / "y.npy").string() + ": there is no such file");
}

}  // namespace
}  // namespace swizzle
