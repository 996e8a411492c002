#include "server/rest/text_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/model/string_tensor.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Tensor(const std::vector<std::string>& texts) {
  std::string tensor;
  for (const std::string& text : texts) AppendElement(text, tensor);
  return tensor;
}

TEST(TextPartsTest, SingleTextsAndPairsAreApart) {
  TextRequest request = {.texts = Tensor({"a", "b", "c", "d", "e", "f"}), .count = 4};
  request.pairs = {true, false, true, false};
  EXPECT_THAT(GroupKinds(request), ElementsAre(1, 3, 0, 2));
  EXPECT_EQ(request.texts, Tensor({"c", "f", "a", "b", "d", "e"}));
  EXPECT_THAT(request.pairs, ElementsAre(false, false, true, true));
  const std::vector<TextPart> parts = PartsOf(request, 8);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(TensorOf(request, parts[0]), Tensor({"c", "f"}));
  EXPECT_EQ(TensorOf(request, parts[1]), Tensor({"a", "b", "d", "e"}));
  EXPECT_FALSE(parts[0].pairs);
  EXPECT_TRUE(parts[1].pairs);
  EXPECT_EQ(parts[1].first, 2);
  EXPECT_EQ(RowsAt(std::vector<int64_t>{1, 3, 0, 2}, std::vector<std::string>{"CCFF", "ABDE"}, 2), "ABCCDEFF");
}

TEST(TextPartsTest, RowsOfOneKindStayWhereTheyAre) {
  for (const bool pairs : {false, true}) {
    TextRequest request = {.texts = pairs ? Tensor({"a", "b", "c", "d"}) : Tensor({"a", "b"}), .count = 2};
    request.pairs = {pairs, pairs};
    const std::string before = request.texts;
    EXPECT_THAT(GroupKinds(request), IsEmpty());
    EXPECT_EQ(request.texts, before);
  }
}

TEST(TextPartsTest, EmptyTextsFillAPart) {
  TextRequest request = {.count = 100'000};
  request.texts.resize(400'000);
  const std::vector<TextPart> parts = PartsOf(request, request.count);
  EXPECT_GT(parts.size(), 4u);
  EXPECT_LT(parts.size(), 10u);
  EXPECT_EQ(parts.back().first + parts.back().rows, request.count);
}

TEST(TextPartsTest, TheQueryCountsForEveryText) {
  TextRequest request = {.texts = Tensor({"a", "b", "c"}), .count = 3, .query = std::string(kMostPartBytes, 'q')};
  const std::vector<TextPart> parts = PartsOf(request, 8);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(TensorOf(request, parts[1]), Tensor({*request.query, "b"}));
}

}  // namespace
}  // namespace swizzle
