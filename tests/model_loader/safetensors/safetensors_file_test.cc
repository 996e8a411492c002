#include "model_loader/safetensors/safetensors_file.h"

#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using testing::SafetensorsBytes;

std::string Zeros(size_t count) { return std::string(count, '\0'); }

std::string Repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

StatusOr<SafetensorsFile> Parse(const std::vector<std::byte>& file) { return ParseSafetensors(file); }

TEST(SafetensorsFile, ReadsTensorsAndMetadata) {
  const auto file = SafetensorsBytes(R"({"__metadata__":{"format":"pt","note":""},)"
                                     R"("b":{"shape":[2,3],"data_offsets":[8,14],"dtype":"U8"},)"
                                     R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                     std::string("\0\0\x80\x3f\0\0\0\x40sparse", 14));
  const auto parsed = Parse(file);
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(parsed->metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"note", ""}}));
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(CopyOf(parsed->tensors.at("a")), Tensor::Floats({2}, std::vector<float>{1, 2}));
  const Tensor bytes = CopyOf(parsed->tensors.at("b"));
  EXPECT_EQ(bytes.dtype, DType::kUint8);
  EXPECT_EQ(bytes.shape, (Shape{2, 3}));
  EXPECT_EQ(bytes.bytes.front(), std::byte{'s'});
  EXPECT_EQ(bytes.bytes.back(), std::byte{'e'});
}

// Every dtype, each with two elements.
TEST(SafetensorsFile, KnowsDTypes) {
  const std::pair<const char*, DType> dtypes[] = {
      {"BOOL", DType::kBool},   {"U8", DType::kUint8},    {"U16", DType::kUint16},    {"U32", DType::kUint32},
      {"U64", DType::kUint64},  {"I8", DType::kInt8},     {"I16", DType::kInt16},     {"I32", DType::kInt32},
      {"I64", DType::kInt64},   {"F16", DType::kFloat16}, {"BF16", DType::kBFloat16}, {"F32", DType::kFloat32},
      {"F64", DType::kFloat64},
  };
  for (const auto& [name, dtype] : dtypes) {
    const size_t bytes = 2 * ElementBytes(dtype);
    const auto file = SafetensorsBytes(
        Concat(R"({"t":{"dtype":")", name, R"(","shape":[2],"data_offsets":[0,)", bytes, "]}}"), Zeros(bytes));
    const auto parsed = Parse(file);
    ASSERT_THAT(parsed, IsOk()) << name;
    EXPECT_EQ(parsed->tensors.at("t").dtype, dtype);
    EXPECT_EQ(parsed->tensors.at("t").bytes.size(), bytes);
  }
}

TEST(SafetensorsFile, AcceptsWhatIsUnusual) {
  EXPECT_THAT(Parse(SafetensorsBytes("{}", "")), IsOk());
  EXPECT_THAT(Parse(SafetensorsBytes("{} \n\t ", "")), IsOk());
  EXPECT_THAT(Parse(SafetensorsBytes(R"({"__metadata__":{}})", "")), IsOk());
  const auto scalar = SafetensorsBytes(R"({"t":{"dtype":"I16","shape":[],"data_offsets":[0,2]}})", "ab");
  ASSERT_THAT(Parse(scalar), IsOk());
  EXPECT_EQ(CopyOf(Parse(scalar)->tensors.at("t")).bytes, (std::vector<std::byte>{std::byte{'a'}, std::byte{'b'}}));
  // Two tensors without elements at one place, named before what they stand behind.
  const auto empty = SafetensorsBytes(R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[1,1]},)"
                                      R"("f":{"dtype":"F32","shape":[3,0],"data_offsets":[1,1]},)"
                                      R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                      "x");
  ASSERT_THAT(Parse(empty), IsOk());
  EXPECT_EQ(Parse(empty)->tensors.at("e").shape, (Shape{0, 7}));
}

TEST(SafetensorsFile, ConvertsToFloat32) {
  const auto tensor = [](DType dtype, const std::string& bytes) {
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    const auto count = static_cast<int64_t>(bytes.size() / ElementBytes(dtype));
    return ToFloat32({dtype, {count}, {data, data + bytes.size()}}, "t");
  };
  const auto halves = tensor(DType::kFloat16, std::string("\x00\x3c\x00\xc0\x01\x00\x00\x7c", 8));
  ASSERT_THAT(halves, IsOk());
  EXPECT_EQ(*halves, Tensor::Floats({4}, std::vector<float>{1, -2, std::ldexp(1.0f, -24), INFINITY}));
  const auto bfloats = tensor(DType::kBFloat16, std::string("\x80\x3f\x40\xc0", 4));
  ASSERT_THAT(bfloats, IsOk());
  EXPECT_EQ(*bfloats, Tensor::Floats({2}, std::vector<float>{1, -3}));
  const auto doubles = tensor(DType::kFloat64, std::string("\0\0\0\0\0\0\xf8\x3f", 8));
  ASSERT_THAT(doubles, IsOk());
  EXPECT_EQ(*doubles, Tensor::Floats({1}, std::vector<float>{1.5f}));
  EXPECT_THAT(tensor(DType::kInt32, Zeros(4)), IsError(kUnsupported, "t is INT32; a floating-point type"));
}

TEST(SafetensorsFile, RefusesFilesShorterThanTheySay) {
  EXPECT_THAT(Parse({}), IsError(kInvalid, "an empty file"));
  EXPECT_THAT(Parse(std::vector<std::byte>(7)), IsError(kInvalid, "only 7 bytes"));
  EXPECT_THAT(Parse(SafetensorsBytes("{}", "", 3)), IsError(kInvalid, "its header has 3 bytes, but only 2 follow"));
  EXPECT_THAT(Parse(SafetensorsBytes("{}", "", 100'000'000)), IsError(kInvalid, "but only 2 follow"));
  EXPECT_THAT(Parse(SafetensorsBytes("{}", "", 100'000'001)), IsError(kInvalid, "the limit is 100000000"));
  EXPECT_THAT(Parse(SafetensorsBytes("{}", "", ~uint64_t{0})), IsError(kInvalid, "18446744073709551615 bytes"));
  EXPECT_THAT(Parse(SafetensorsBytes("{}", "", 0)), IsError(kInvalid, "does not begin with '{'"));
}

struct Fault {
  const char* name;
  std::string header;
  size_t data_bytes;
  const char* message;
  StatusCode code = kInvalid;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class SafetensorsFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(SafetensorsFaultTest, IsRefused) {
  const Fault& fault = GetParam();
  EXPECT_THAT(Parse(SafetensorsBytes(fault.header, Zeros(fault.data_bytes))), IsError(fault.code, fault.message));
}

// One tensor "t" of these fields.
Fault Fields(const char* name, const std::string& fields, size_t data_bytes, const char* message,
             StatusCode code = kInvalid) {
  return {name, R"({"t":{)" + fields + "}}", data_bytes, message, code};
}

Fault Extent(const char* name, const std::string& shape, const std::string& offsets, size_t data_bytes,
             const char* message) {
  return Fields(name, R"("dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]", data_bytes,
                message);
}

const std::string kPair = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":)";

const Fault kFaults[] = {
    {"NotJson", "{nonsense", 0, "not UTF-8 JSON"},
    {"NotAnObject", "[]", 0, "does not begin with '{'"},
    {"String", "\"{}\"", 0, "does not begin with '{'"},
    {"SpaceFirst", " {}", 0, "does not begin with '{'"},
    {"ByteOrderMark", "\xef\xbb\xbf{}", 0, "does not begin with '{'"},
    {"TwoObjects", "{}{}", 0, "not UTF-8 JSON"},
    {"ZeroByteAsEnd", std::string("{}\0rubbish", 10), 0, "holds a zero byte"},
    {"Truncated", R"({"t":{"dtype":"U8")", 0, "not UTF-8 JSON"},
    {"Comment", "{/**/}", 0, "not UTF-8 JSON"},
    {"NotUtf8", "{\"\xff\":{}}", 0, "not UTF-8 JSON"},
    {"OverlongUtf8", "{\"\xc0\x80\":{}}", 0, "not UTF-8 JSON"},
    {"LoneSurrogate", R"({"\ud800":{}})", 0, "not UTF-8 JSON"},
    {"NoName", R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "has no name"},
    {"NameNotPrintable", R"({"a\nb":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, "not printable"},
    {"NameTooLong", "{\"" + std::string(1025, 'x') + "\":{}}", 0, "a name of 1025 bytes"},
    {"TensorTwice", R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{}})", 0, "'t' is there twice"},
    {"EscapedTwice", R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0074":{}})", 0, "'t' is there twice"},
    {"TensorNull", R"({"t":null})", 0, "tensor 't' is null"},
    {"TensorList", R"({"t":[]})", 0, "tensor 't' is a list"},
    {"TensorNumber", R"({"t":3})", 0, "tensor 't' is a number"},
    {"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", 0, "twice"},
    {"MetadataKeyTwice", R"({"__metadata__":{"a":"","a":""}})", 0, "a key of the metadata is given twice"},
    {"MetadataNumber", R"({"__metadata__":{"a":1}})", 0, "the metadata 'a' is a number; it must be a string"},
    {"MetadataNull", R"({"__metadata__":{"a":null}})", 0, "the metadata 'a' is null"},
    {"MetadataObject", R"({"__metadata__":{"a":{}}})", 0, "the metadata 'a' is an object"},
    {"MetadataList", R"({"__metadata__":{"a":[]}})", 0, "the metadata 'a' is a list"},
    {"MetadataTruth", R"({"__metadata__":{"a":true}})", 0, "the metadata 'a' is a truth value"},
    {"MetadataNoObject", R"({"__metadata__":"pt"})", 0, "the metadata is a string"},
    Fields("Empty", "", 0, "lacks its dtype"),
    Fields("NoDType", R"("shape":[0],"data_offsets":[0,0])", 0, "lacks its dtype"),
    Fields("NoShape", R"("dtype":"U8","data_offsets":[0,0])", 0, "lacks its dtype, its shape"),
    Fields("NoOffsets", R"("dtype":"U8","shape":[0])", 0, "its two data_offsets"),
    Fields("OneOffset", R"("dtype":"U8","shape":[0],"data_offsets":[0])", 0, "its two data_offsets"),
    Fields("ThreeOffsets", R"("dtype":"U8","shape":[0],"data_offsets":[0,0,0])", 0, "more than 2 numbers"),
    Fields("KeyTwice", R"("dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0])", 0, "given twice: 'shape'"),
    Fields("UnknownKey", R"("dtype":"U8","strides":[0])", 0, "is 'strides', which is not known"),
    Fields("UnknownDType", R"("dtype":"F33")", 0, "has a dtype 'F33', which is not known"),
    Fields("LowerCaseDType", R"("dtype":"f32")", 0, "has a dtype 'f32', which is not known"),
    Fields("DTypeNotPrintable", R"("dtype":"\u0007")", 0, "that is not printable"),
    Fields("DTypeNumber", R"("dtype":32)", 0, "its dtype is or holds a number"),
    Fields("DTypeList", R"("dtype":["F32"])", 0, "its dtype is or holds a list"),
    Fields("EightBits", R"("dtype":"F8_E4M3")", 0, "has the dtype F8_E4M3, which is not supported", kUnsupported),
    Fields("Complex", R"("dtype":"C64")", 0, "has the dtype C64, which is not supported", kUnsupported),
    Fields("ShapeNull", R"("shape":null)", 0, "its shape is or holds null"),
    Fields("ShapeNumber", R"("shape":4)", 0, "its shape is or holds a number"),
    Fields("ShapeNested", R"("shape":[[4]])", 0, "its shape is or holds a list"),
    Fields("ShapeOfText", R"("shape":["4"])", 0, "its shape is or holds a string"),
    Fields("ShapeOfObjects", R"("shape":[{}])", 0, "its shape is or holds an object"),
    Fields("RankTooHigh", R"("shape":[1)" + Repeated(",1", 64) + "]", 0, "more than 64 numbers"),
    Extent("NegativeDimension", "-1", "0,4", 4, "its shape is or holds a negative number"),
    Extent("MinusZero", "-0", "0,0", 0, "its shape is or holds a negative number"),
    Extent("FractionalDimension", "1.0", "0,4", 4, "its shape is or holds a number that is not whole"),
    Extent("ExponentDimension", "1e0", "0,4", 4, "its shape is or holds a number that is not whole"),
    Extent("HugeDimension", "9223372036854775808", "0,4", 4, "its shape holds a number above the limit"),
    Extent("HugerDimension", "99999999999999999999", "0,4", 4, "or above the limit of 63 bits"),
    Extent("ElementsOverflow", "4294967296,4294967296", "0,0", 0, "more elements than fit in 64 bits"),
    Extent("BytesOverflow", "4611686018427387904", "0,0", 0, "more bytes than fit in 64 bits"),
    Extent("NegativeOffset", "1", "-4,0", 4, "its data_offsets is or holds a negative number"),
    Extent("FractionalOffset", "1", "0,4.0", 4, "its data_offsets is or holds a number that is not whole"),
    Extent("OffsetsTurned", "1", "4,0", 4, "from 4 to 0, but takes 4 bytes by its shape [1] of FP32"),
    Extent("TooFewBytes", "2", "0,4", 4, "from 0 to 4, but takes 8 bytes"),
    Extent("TooManyBytes", "1", "0,8", 8, "from 0 to 8, but takes 4 bytes"),
    Extent("ZeroElementsWithBytes", "0", "0,4", 4, "but takes 0 bytes"),
    Extent("GapAtTheStart", "1", "4,8", 8, "begins at 4 of the data, but the tensor before it ends at 0"),
    Extent("FileTooShort", "2", "0,8", 4, "the tensors take 8 bytes, but the file has 4"),
    Extent("FileTooLong", "1", "0,4", 5, "the tensors take 4 bytes, but the file has 5"),
    {"DataWithoutTensors", "{}", 1, "the tensors take 0 bytes, but the file has 1"},
    {"Gap", kPair + "[5,9]}}", 9, "tensor 'b' begins at 5 of the data, but the tensor before it ends at 4"},
    {"Overlap", kPair + "[3,7]}}", 7, "tensor 'b' begins at 3 of the data, but the tensor before it ends at 4"},
    {"SamePlace", kPair + "[0,4]}}", 4, "begins at 0 of the data, but the tensor before it ends at 4"},
    {"EmptyBehindTheEnd", R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[9,9]}})", 0, "begins at 9 of the data"},
};

INSTANTIATE_TEST_SUITE_P(Faults, SafetensorsFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace swizzle
