#include <nlohmann/json.hpp>

#include "model_loader/pack/options.h"
#include "tests/model_loader/pack/commands_fixture.h"

namespace swizzle::pack {
namespace {

class TokenizeTest : public Commands {
 protected:
  TokenizeTest() {
    std::ofstream(Path("vocab.txt")) << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ncat\n##s\n";
    std::ofstream(Path("tokenizer_config.json")) << R"({"do_lower_case": true})";
  }
};

TEST_F(TokenizeTest, ShowsTheTokensOfEachText) {
  EXPECT_EQ(Run({"tokenize", Path(""), "A cats", ""}), 0) << err();
  EXPECT_EQ(out(),
            "id  token\n"
            "--  -------\n"
            " 2  '[CLS]'\n"
            " 5  'a'\n"
            " 6  'cat'\n"
            " 7  '##s'\n"
            " 3  '[SEP]'\n"
            "5 tokens\n"
            "\n"
            "id  token\n"
            "--  -------\n"
            " 2  '[CLS]'\n"
            " 3  '[SEP]'\n"
            "2 tokens\n");
}

TEST_F(TokenizeTest, PairsHaveTypes) {
  EXPECT_EQ(Run({"tokenize", Path("vocab.txt"), "a a a", "--pair=cat", "--max-tokens=5"}), 0) << err();
  EXPECT_THAT(out(), ::testing::HasSubstr(" 6  'cat'       1\n"));
  EXPECT_THAT(out(), ::testing::HasSubstr("5 tokens, cut off\n"));
}

TEST_F(TokenizeTest, OffsetsAreCharactersOfTheText) {
  EXPECT_EQ(Run({"tokenize", Path(""), "\u00c4 A cats", "--offsets"}), 0) << err();
  EXPECT_EQ(out(),
            "id  token    characters\n"
            "--  -------  ----------\n"
            " 2  '[CLS]'\n"
            " 5  'a'      0 to 0\n"
            " 5  'a'      2 to 2\n"
            " 6  'cat'    4 to 6\n"
            " 7  '##s'    7 to 7\n"
            " 3  '[SEP]'\n"
            "6 tokens\n");
  EXPECT_EQ(Run({"tokenize", Path(""), "A cats", "--pair=a", "--offsets", "-o", "json"}), 0) << err();
  EXPECT_EQ(nlohmann::json::parse(out())[0]["offsets"],
            nlohmann::json::parse("[[0, 0], [0, 1], [2, 5], [5, 6], [0, 0], [0, 1], [0, 0]]"));
}

TEST_F(TokenizeTest, LinesAreTextsAndJsonIsAnArray) {
  Type("a cat\ndog\n");
  EXPECT_EQ(Run({"tokenize", Path(""), "-o", "json"}), 0) << err();
  const auto json = nlohmann::json::parse(out());
  EXPECT_EQ(json, nlohmann::json::parse(R"([
    {"text": "a cat", "ids": [2, 5, 6, 3], "tokens": ["[CLS]", "a", "cat", "[SEP]"], "type_ids": [0, 0, 0, 0],
     "truncated": false},
    {"text": "dog", "ids": [2, 1, 3], "tokens": ["[CLS]", "[UNK]", "[SEP]"], "type_ids": [0, 0, 0],
     "truncated": false}])"));
  Type("");
  EXPECT_EQ(Run({"tokenize", Path(""), "-o", "json"}), 0);
  EXPECT_EQ(out(), "[]\n");
}

TEST_F(TokenizeTest, SaysWhatIsWrong) {
  ExpectBadInput({"tokenize", Path("nowhere"), "a"}, "nowhere");
  ExpectBadInput({"tokenize"}, "PATH is required");
  ExpectBadInput({"tokenize", Path(""), "a", "--max-tokens=1"}, "text 0: of at most 1 tokens the special ones take 2");
}

}  // namespace
}  // namespace swizzle::pack
