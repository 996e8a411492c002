#include "server/rpc/wire_survey.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <malloc.h>

#include "proto/grpc_service.pb.h"

namespace swizzle {
namespace {

using inference::ModelInferRequest;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

// In pieces of so many bytes, which fields cross.
StatusOr<WireSurvey> Survey(const std::string& bytes, const MessageLimits& server = ServerLimits(64 * kMiB),
                            const std::optional<MessageLimits>& model = {}, int piece = 7) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()), piece);
  WireSurvey survey;
  const Status status = SurveyInfer(
      in, server, [&](std::string_view) -> StatusOr<MessageLimits> { return model.value_or(server); }, survey);
  if (status.ok()) return survey;
  return status;
}

ModelSpec Spec(DType dtype, Shape dims, int64_t max_batch_size = 8) {
  ModelSpec spec;
  spec.name = "m";
  spec.max_batch_size = max_batch_size;
  spec.inputs = {{"X", dtype, std::move(dims)}};
  return spec;
}

TEST(WireSurvey, FindsTheModelWhereverItsNameStands) {
  ModelInferRequest request;
  request.add_inputs()->set_name("X");
  const std::string inputs = request.SerializeAsString();
  request.set_model_name("m");
  const std::string name = request.SerializeAsString().substr(0, 3);
  for (const std::string& bytes : {name + inputs, inputs + name, inputs}) {
    google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()), 1);
    std::vector<std::string> asked;
    WireSurvey survey;
    const MessageLimits limits = ServerLimits(kMiB);
    ASSERT_TRUE(SurveyInfer(
                    in, limits,
                    [&](std::string_view model) -> StatusOr<MessageLimits> {
                      asked.emplace_back(model);
                      return limits;
                    },
                    survey)
                    .ok());
    EXPECT_THAT(asked, ::testing::ElementsAre(bytes == inputs ? "" : "m"));
    EXPECT_EQ(survey.bytes, static_cast<int64_t>(bytes.size()));
  }
}

TEST(WireSurvey, TheErrorOfAnUnknownModelEndsIt) {
  ModelInferRequest request;
  request.set_model_name("nobody");
  const std::string bytes = request.SerializeAsString() + "\xff";
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  WireSurvey survey;
  const Status status = SurveyInfer(
      in, ServerLimits(kMiB),
      [](std::string_view model) -> StatusOr<MessageLimits> {
        return MakeError(StatusCode::kNotFound, std::string(model));
      },
      survey);
  EXPECT_EQ(status, MakeError(StatusCode::kNotFound, "nobody"));
  EXPECT_FALSE(survey.malformed || survey.too_large);
}

int64_t AllocatedBytes() { return static_cast<int64_t>(mallinfo2().uordblks + mallinfo2().hblkhd); }

// What protobuf takes is never more than what the survey said.
void ExpectCovered(const std::string& what, const std::string& bytes) {
  const StatusOr<WireSurvey> survey = Survey(bytes, {.bytes = 1 << 30, .parsed_bytes = 1 << 30, .model = {}}, {}, -1);
  ASSERT_TRUE(survey.ok()) << what << survey.status();
  const int64_t before = AllocatedBytes();
  ModelInferRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes)) << what;
  const int64_t taken = AllocatedBytes() - before;
  EXPECT_GE(survey->parsed_bytes + 1024, taken) << what;
  EXPECT_LE(survey->parsed_bytes, 6 * taken + 1024) << what << ": far from what it takes";
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// A field with a length, as protobuf writes it.
std::string Delimited(char tag, const std::string& content) {
  std::string head(1, tag);
  for (size_t left = content.size(); true; left >>= 7) {
    head += static_cast<char>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    if (left <= 0x7f) return head + content;
  }
}

TEST(WireSurvey, CoversWhatParsingTakes) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers allocate by themselves, and count nothing";
#endif
  constexpr int kTimes = 20000;
  ExpectCovered("empty inputs", Repeat(std::string("\x2a\0", 2), kTimes));
  ExpectCovered("empty outputs", Repeat(std::string("\x32\0", 2), kTimes));
  ExpectCovered("empty contents", Repeat(std::string("\x3a\0", 2), kTimes));
  ExpectCovered("short contents", Repeat(Delimited(0x3a, std::string(20, 'x')), kTimes));
  ExpectCovered("named inputs", Repeat(Delimited(0x2a, Delimited(0x0a, "name")), kTimes));
  ExpectCovered("inputs with empty contents", Repeat(Delimited(0x2a, std::string("\x2a\0", 2)), kTimes));
  ExpectCovered("a long shape", Delimited(0x2a, Delimited(0x1a, std::string(kTimes, '\1'))));
  ExpectCovered("an unpacked shape", Delimited(0x2a, Repeat("\x18\1", kTimes)));
  for (const char field : {'\x0a', '\x12', '\x1a', '\x22', '\x2a'}) {
    ExpectCovered("varints", Delimited(0x2a, Delimited(0x2a, Delimited(field, std::string(kTimes, '\1')))));
  }
  for (const char field : {'\x32', '\x3a'}) {
    ExpectCovered("floats", Delimited(0x2a, Delimited(0x2a, Delimited(field, std::string(kTimes, '\1')))));
  }
  ExpectCovered("strings", Delimited(0x2a, Delimited(0x2a, Repeat(std::string("\x42\0", 2), kTimes))));
  ExpectCovered("unknown fields", Repeat("\x78\1", kTimes));
  ExpectCovered("unknown text", Repeat(std::string("\x7a\0", 2), kTimes));
  std::string parameters;
  for (int i = 0; i < kTimes; ++i) parameters += Delimited(0x22, Delimited(0x0a, std::to_string(i)));
  ExpectCovered("parameters", parameters);
}

// Protobuf keeps a number of another wire type than its field has as an unknown field, which takes more.
TEST(WireSurvey, CoversNumbersOfEveryWireType) {
#if defined(__SANITIZE_ADDRESS__) || defined(SWIZZLE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers allocate by themselves, and count nothing";
#endif
  constexpr int kTimes = 20000;
  for (const auto& [wire_type, bytes] : {std::pair{0, 1}, {1, 8}, {5, 4}}) {
    for (int number = 1; number <= 9; ++number) {
      const std::string field = static_cast<char>(number << 3 | wire_type) + std::string(bytes, '\1');
      const std::string what = ::testing::PrintToString(std::pair(number, wire_type));
      ExpectCovered("contents " + what, Delimited(0x2a, Delimited(0x2a, Repeat(field, kTimes))));
      ExpectCovered("input " + what, Delimited(0x2a, Repeat(field, kTimes)));
      ExpectCovered("parameter " + what, Delimited(0x22, Delimited(0x12, Repeat(field, kTimes))));
      ExpectCovered("request " + what, Repeat(field, kTimes));
    }
  }
}

TEST(WireSurvey, WhatIsNoMessageIsInvalid) {
  for (const std::string& bytes :
       {std::string("\xff\xff"), std::string("\x0a\x05x"), std::string("\x0b"), std::string("\x0f"),
        std::string("\x2a\x02\x0a\x05", 4), std::string("\0\1", 2), std::string("\x0a\xff\xff\xff\xff\x7f"),
        std::string("\x2a\x04\x1a\x02\xff\xff", 6)}) {
    const auto survey = Survey(bytes);
    EXPECT_EQ(survey.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(survey.status().message()), HasSubstr("cannot be parsed as a ModelInferRequest"));
  }
}

TEST(WireSurvey, EveryPrefixAndFlippedBitEnds) {
  ModelInferRequest request;
  request.set_model_name("m");
  (*request.mutable_parameters())["k"].set_string_param("v");
  auto& input = *request.add_inputs();
  input.add_shape(300);
  input.mutable_contents()->add_fp32_contents(1);
  input.mutable_contents()->add_bytes_contents("b");
  request.add_raw_input_contents("raw");
  const std::string bytes = request.SerializeAsString();
  for (size_t size = 0; size <= bytes.size(); ++size) (void)Survey(bytes.substr(0, size));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    (void)Survey(flipped);
  }
  EXPECT_TRUE(Survey(bytes).ok());
}

std::string IdIn(const std::string& bytes, int64_t most = kMiB) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  return RequestId(in, most);
}

TEST(WireSurvey, TheIdIsFoundWithoutParsing) {
  ModelInferRequest request;
  request.add_raw_input_contents(std::string(1000, 'x'));
  EXPECT_EQ(IdIn(request.SerializeAsString()), "");
  request.set_id("id 7");
  request.set_model_name("m");
  EXPECT_EQ(IdIn(request.SerializeAsString()), "id 7");
  const std::string last = "\x0a\x01m\x1a\x02ok";  // after the model
  EXPECT_EQ(IdIn(last), "ok");
  EXPECT_EQ(IdIn(last, 3), "") << "beyond what may be read";
  EXPECT_EQ(IdIn("\x1a\x05ok"), "") << "it ends too early";
  EXPECT_EQ(IdIn("\x1a\x02\xff\xff"), "") << "no message could carry it";
  EXPECT_EQ(IdIn("\xff"), "");
  request.set_id(std::string(2000, 'x'));
  EXPECT_EQ(IdIn(request.SerializeAsString()), "") << "longer than anybody's";
}

TEST(WireSurvey, LimitsAreKeptToTheByte) {
  ModelInferRequest request;
  request.add_raw_input_contents(std::string(1000, 'x'));
  const std::string bytes = request.SerializeAsString();
  const int64_t size = static_cast<int64_t>(bytes.size());
  const int64_t parsed = Survey(bytes)->parsed_bytes;
  EXPECT_TRUE(Survey(bytes, {.bytes = size, .parsed_bytes = parsed, .model = {}}).ok());
  EXPECT_EQ(Survey(bytes, {.bytes = size - 1, .parsed_bytes = parsed, .model = {}}).status().message(),
            Concat("the message has more than ", size - 1, " bytes, the most that this server takes"));
  EXPECT_EQ(Survey(bytes, {.bytes = size, .parsed_bytes = parsed - 1, .model = {}}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Survey(bytes, ServerLimits(kMiB), MessageLimits{.bytes = 100, .parsed_bytes = 100, .model = "m"})
                .status()
                .message(),
            "the message has more than 100 bytes, the most that inputs of model 'm' can be at its largest batch");
}

TEST(WireSurvey, AModelsLimitsHoldItsLargestBatchInEveryForm) {
  const MessageLimits server = ServerLimits(64 * kMiB);
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kUint16, DType::kInt32, DType::kInt64, DType::kUint64,
                            DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const ModelSpec spec = Spec(dtype, {1000});  // limits show its name
    const MessageLimits limits = ModelLimits(spec, server);
    EXPECT_EQ(limits.model, "m");
    EXPECT_GE(limits.bytes, 8000 * static_cast<int64_t>(ElementBytes(dtype)));
    EXPECT_LT(limits.bytes, 2 * kMiB);
    EXPECT_LT(limits.parsed_bytes, 2 * kMiB);
  }
}

TEST(WireSurvey, WhatIsOpenOrHugeHasTheServersLimits) {
  const MessageLimits server = ServerLimits(64 * kMiB);
  EXPECT_EQ(ModelLimits(Spec(DType::kFloat32, {-1}), server).model, "");
  EXPECT_EQ(ModelLimits(Spec(DType::kString, {2}), server).model, "");
  EXPECT_EQ(ModelLimits(Spec(DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}), server).bytes, server.bytes);
  EXPECT_EQ(ModelLimits(Spec(DType::kFloat32, {int64_t{1} << 62}), server).bytes, server.bytes);
  EXPECT_EQ(ModelLimits(Spec(DType::kInt8, {64 * kMiB}, 1), server).bytes, server.bytes);
}

}  // namespace
}  // namespace swizzle
