#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/text/sentencepiece_model.h"
#include "model_loader/text/tokenizer.h"
#include "model_loader/text/tokenizer_files.h"
#include "tests/model_loader/text/charsmap_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;

// A field of a protobuf message.
std::string Bytes(int number, const std::string& value) {
  std::string field = {static_cast<char>(number << 3 | 2)};
  size_t size = value.size();
  for (; size >= 0x80; size >>= 7) field += static_cast<char>(size | 0x80);
  return field + static_cast<char>(size) + value;
}
std::string Varint(int number, int value) {
  std::string field;
  const int tag = number << 3;
  if (tag >= 0x80) field += static_cast<char>(tag | 0x80);
  field += static_cast<char>(tag >= 0x80 ? tag >> 7 : tag);
  return field + static_cast<char>(value);
}

std::string Piece(const std::string& text, float score, PieceKind kind = PieceKind::kNormal) {
  std::string real(4, '\0');
  std::memcpy(real.data(), &score, 4);
  return Bytes(1, Bytes(1, text) + "\x15" + real + Varint(3, static_cast<int>(kind)));
}

const std::string kPieces = Piece("<unk>", 0, PieceKind::kUnknown) + Piece("<s>", 0, PieceKind::kControl) +
                            Piece("</s>", 0, PieceKind::kControl) + Piece("▁", -3) + Piece("a", -2) + Piece("▁a", -1) +
                            Piece("b", -2);

StatusOr<Tokenizer> Read(const std::string& model, const std::string& model_type = "") {
  TokenizerSettings settings;
  settings.model_type = model_type;
  SWIZZLE_ASSIGN_OR_RETURN(TokenizerParts parts, ParseSentencepieceModel(model, settings));
  return Tokenizer(std::move(parts));
}

TEST(Sentencepiece, IdsArePlaces) {
  const auto made = Read(kPieces);
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(made->Encode("a  ab x ")->ids, ElementsAre(5, 5, 6, 3, 0));
  EXPECT_THAT(made->Encode("<s>")->ids, ElementsAre(3, 0));  // control pieces are no text
  EXPECT_EQ(made->special_ids().eos, 2);
  EXPECT_EQ(made->vocabulary_size(), 7);
}

TEST(Sentencepiece, XlmRobertaCountsItsOwnWay) {
  const auto made = Read(kPieces, "xlm-roberta");
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(made->Encode("a x")->ids, ElementsAre(0, 6, 4, 3, 2));
  EXPECT_THAT(made->Encode("a", "b")->ids, ElementsAre(0, 6, 2, 2, 4, 7, 2));
  EXPECT_THAT(made->Encode("a <mask>")->ids, ElementsAre(0, 6, 8, 2));
  EXPECT_EQ(made->special_ids().pad, 1);
  EXPECT_EQ(made->Token(8), "<mask>");
}

TEST(Sentencepiece, T5EndsTexts) {
  const auto made = Read(kPieces, "t5");
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(made->Encode("a")->ids, ElementsAre(5, 2));
  EXPECT_THAT(made->Encode("a<extra_id_0>")->ids, ElementsAre(5, 106, 2));
}

TEST(Sentencepiece, NormalizesAsTheFileSays) {
  const auto normal = [](const std::string& spec, std::string text) {
    auto model = ParseSentencepiece(kPieces + Bytes(3, spec));
    EXPECT_THAT(model, IsOk());
    const auto normalizer = MakeSentencepieceNormalizer(*model);
    EXPECT_THAT(normalizer, IsOk());
    NormalText result{std::move(text), 0};
    EXPECT_THAT((*normalizer)->Apply(result), IsOk());
    return result.text;
  };
  const std::string map = Bytes(2, BuildCharsmap({{"\t", " "}, {"e", "E"}, {"e\xCC\x81", "é"}, {"x", ""}}));
  EXPECT_EQ(normal(map, "\t xa \t e\xCC\x81 e \t"), "▁a▁é▁E");
  EXPECT_EQ(normal(Varint(3, 0), " a "), "a");
  EXPECT_EQ(normal(Varint(4, 0), " a  b "), "▁▁a▁▁b▁");
  EXPECT_EQ(normal(Varint(5, 0), "a b"), " a b");
  EXPECT_EQ(normal("", " \xE3\x80\x80"), "▁\xE3\x80\x80");
  EXPECT_EQ(normal("", "  "), "");
}

TEST(Sentencepiece, WhatIsNotReadIsRefused) {
  const auto invalid = [](const char* message) { return IsError(StatusCode::kInvalidArgument, message); };
  const auto unsupported = [](const char* message) { return IsError(StatusCode::kUnimplemented, message); };
  EXPECT_THAT(Read(Bytes(2, "")), invalid("has no pieces"));
  EXPECT_THAT(Read("\n"), invalid("truncated"));
  EXPECT_THAT(Read(kPieces.substr(0, 20)), invalid("truncated"));
  EXPECT_THAT(Read("{\"a\": 1}"), invalid("sentencepiece model"));
  EXPECT_THAT(Read(Piece("\xFF", 0)), invalid("its piece 0 is damaged"));
  EXPECT_THAT(Read(kPieces + Bytes(3, Bytes(2, "x"))), invalid("precompiled_charsmap is damaged"));
  EXPECT_THAT(Read(Piece("a", 0), "xlm-roberta"), invalid("first three pieces"));
  EXPECT_THAT(Read(Piece("a", 0, PieceKind::kUserDefined)), unsupported("'a' is user-defined"));
  EXPECT_THAT(Read(kPieces + Bytes(2, Varint(3, 2))), unsupported("model_type is 2"));
  EXPECT_THAT(Read(kPieces + Bytes(2, Varint(24, 1))), unsupported("treat_whitespace_as_suffix"));
  EXPECT_THAT(Read(kPieces, "llama"), unsupported("model_type 'llama'"));
}

}  // namespace
}  // namespace swizzle::text
