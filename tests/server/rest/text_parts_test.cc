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

std::string TextTensor(const std::vector<std::string>& texts) {
  std::string tensor;
  for (const std::string& text : texts) AppendElement(text, tensor);
  return tensor;
}

TEST(TextPartsTest, SingleTextsAndPairsAreApart) {
  TextRequest request = {.texts = TextTensor({"a", "b", "c", "d", "e", "f"}), .count = 4};
  request.pairs = {true, false, true, false};
  EXPECT_THAT(GroupKinds(request), ElementsAre(1, 3, 0, 2));
  EXPECT_EQ(request.texts, TextTensor({"c", "f", "a", "b", "d", "e"}));
  EXPECT_THAT(request.pairs, ElementsAre(false, false, true, true));
  const std::vector<TextPart> parts = PartsOf(request, 8);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(TensorOf(request, parts[0]), TextTensor({"c", "f"}));
  EXPECT_EQ(TensorOf(request, parts[1]), TextTensor({"a", "b", "d", "e"}));
  EXPECT_FALSE(parts[0].pairs);
  EXPECT_TRUE(parts[1].pairs);
  EXPECT_EQ(parts[1].first, 2);
  EXPECT_EQ(RowsAt(std::vector<int64_t>{1, 3, 0, 2}, std::vector<std::string>{"CCFF", "ABDE"}, 2), "ABCCDEFF");
}

TEST(TextPartsTest, RowsOfOneKindStayWhereTheyAre) {
  for (const bool pairs : {false, true}) {
    TextRequest request = {.texts = pairs ? TextTensor({"a", "b", "c", "d"}) : TextTensor({"a", "b"}), .count = 2};
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
  TextRequest request = {.texts = TextTensor({"a", "b", "c"}), .count = 3, .query = std::string(kMostPartBytes, 'q')};
  const std::vector<TextPart> parts = PartsOf(request, 8);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(TensorOf(request, parts[1]), TextTensor({*request.query, "b"}));
}

TEST(TextPartsTest, SingleRowsComeAsFewBatchesHaveThem) {
  ModelSpec spec;
  spec.max_batch_size = 64;
  spec.max_batch_tokens = 1 << 14;
  EXPECT_EQ(SingleRowsAtOnce(spec).most, 256);
  EXPECT_EQ(SingleRowsAtOnce(spec).bytes, 4 * (4 << 14));
  spec.preferred_batch_tokens = 1024;
  EXPECT_EQ(SingleRowsAtOnce(spec).bytes, 4 * 4096) << "what batches are filled to counts";
  spec.max_batch_tokens = spec.preferred_batch_tokens = 0;
  EXPECT_EQ(SingleRowsAtOnce(spec).bytes, 4 * int64_t{kMostPartBytes}) << "as inferences of many rows have";
  spec.queue_policy.max_requests = 100;
  EXPECT_EQ(SingleRowsAtOnce(spec).most, 25) << "others find room in the queue";
  EXPECT_EQ(SingleRowsAtOnce(spec).waiting, 50) << "beside many such requests, too";
  spec.queue_policy.max_requests = 1;
  EXPECT_EQ(SingleRowsAtOnce(spec).most, PartsAtOnce::kLeast);
  spec.queue_policy.max_requests = 1000;
  spec.dynamic_batching = false;
  EXPECT_EQ(SingleRowsAtOnce(spec).most, PartsAtOnce::kLeast) << "a batch is one request";
}

TEST(TextPartsTest, LongTextsComeFewAtATime) {
  const PartsAtOnce at_once = {.most = 10, .bytes = 100, .waiting = 50};
  EXPECT_TRUE(at_once.HasRoom(3, 1000, 0));
  EXPECT_FALSE(at_once.HasRoom(4, 101, 0));
  EXPECT_TRUE(at_once.HasRoom(9, 100, 0));
  EXPECT_FALSE(at_once.HasRoom(10, 100, 0));
  EXPECT_FALSE((PartsAtOnce{.most = 2, .waiting = 50}).HasRoom(2, 0, 0)) << "there was no room for more";
  EXPECT_TRUE(PartsAtOnce().HasRoom(3, 1000, 100));
  EXPECT_FALSE(PartsAtOnce().HasRoom(4, 0, 0));
}

TEST(TextPartsTest, ManyRequestsLeaveOthersHalfOfTheQueue) {
  const PartsAtOnce at_once = {.most = 10, .bytes = 100, .waiting = 50};
  EXPECT_TRUE(at_once.HasRoom(4, 100, 49));
  EXPECT_FALSE(at_once.HasRoom(4, 100, 50));
  EXPECT_TRUE(at_once.HasRoom(3, 100, 50));
}

}  // namespace
}  // namespace swizzle
