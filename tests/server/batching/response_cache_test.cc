#include "server/batching/response_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace swizzle {
namespace {

std::vector<TensorView> Inputs(const std::string& text, Shape shape = {1}) {
  return {{DType::kUint8, std::move(shape), std::as_bytes(std::span(text))}};
}

Result Answer(std::string text) {
  Result result;
  result.shapes = {{static_cast<int64_t>(text.size())}};
  result.outputs = {std::move(text)};
  result.batch_rows = 3;
  result.compute = absl::Seconds(1);
  return result;
}

class ResponseCacheTest : public ::testing::Test {
 protected:
  // What was kept for them; empty: nothing.
  std::string Find(ResponseCache::Owner owner, const std::vector<TensorView>& inputs) {
    const auto result = cache_.Find(owner, ResponseCache::HashOf(inputs), inputs);
    return result ? result->outputs[0] : "";
  }
  void Keep(ResponseCache::Owner owner, const std::vector<TensorView>& inputs, const std::string& answer) {
    cache_.Keep(owner, ResponseCache::HashOf(inputs), inputs, Answer(answer));
  }

  ResponseCache cache_{10000};
  const ResponseCache::Owner owner_ = cache_.NewOwner();
};

TEST_F(ResponseCacheTest, GivesWhatWasKeptForTheSameInputs) {
  const std::string abc = "abc";
  Keep(owner_, Inputs(abc), "yes");
  const std::string same = "abc", other = "abd";
  const auto inputs = Inputs(same);
  const auto found = cache_.Find(owner_, ResponseCache::HashOf(inputs), inputs);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->outputs, std::vector<std::string>{"yes"});
  EXPECT_EQ(found->shapes, std::vector<Shape>{{3}});
  EXPECT_EQ(found->batch_rows, 3);
  EXPECT_EQ(found->compute, absl::ZeroDuration());
  EXPECT_EQ(Find(owner_, Inputs(other)), "");
  EXPECT_EQ(Find(owner_, Inputs(abc, {3, 1})), "") << "bytes are the same, the shape is not";
  EXPECT_EQ(Find(cache_.NewOwner(), Inputs(abc)), "") << "another model";
}

TEST_F(ResponseCacheTest, TensorsAreNotRunTogether) {
  const std::string ab = "ab", c = "c", a = "a", bc = "bc";
  const std::vector<TensorView> one = {Inputs(ab)[0], Inputs(c)[0]}, other = {Inputs(a)[0], Inputs(bc)[0]};
  Keep(owner_, one, "one");
  EXPECT_EQ(Find(owner_, other), "");
  EXPECT_EQ(Find(owner_, {one[0]}), "");
}

// Whoever finds two inputs of one hash gets a miss, and nobody's answer.
TEST_F(ResponseCacheTest, InputsOfOneHashHaveNoAnswerInCommon) {
  const std::string mine = "mine", yours = "yours";
  cache_.Keep(owner_, 7, Inputs(mine), Answer("of mine"));
  EXPECT_FALSE(cache_.Find(owner_, 7, Inputs(yours)).has_value());
  cache_.Keep(owner_, 7, Inputs(yours), Answer("of yours"));
  EXPECT_EQ(cache_.Find(owner_, 7, Inputs(yours))->outputs[0], "of yours");
  EXPECT_FALSE(cache_.Find(owner_, 7, Inputs(mine)).has_value());
}

TEST_F(ResponseCacheTest, HoldsNoMoreThanItsBound) {
  const std::string first(3000, 'a'), second(3000, 'b'), third(3000, 'c');
  Keep(owner_, Inputs(first), "1");
  Keep(owner_, Inputs(second), "2");
  EXPECT_EQ(Find(owner_, Inputs(first)), "1");  // it is now the second that nobody asked for
  Keep(owner_, Inputs(third), "3");
  EXPECT_LE(cache_.bytes(), 10000);
  EXPECT_EQ(Find(owner_, Inputs(second)), "");
  EXPECT_EQ(Find(owner_, Inputs(first)), "1");
  EXPECT_EQ(Find(owner_, Inputs(third)), "3");
  const std::string large(10000, 'd');
  Keep(owner_, Inputs(large), "4");
  EXPECT_EQ(Find(owner_, Inputs(large)), "");
  EXPECT_EQ(Find(owner_, Inputs(third)), "3") << "what has no room takes nobody's";
}

TEST_F(ResponseCacheTest, ForgetsWhatBelongsToAModel) {
  const std::string text = "abc";
  const ResponseCache::Owner other = cache_.NewOwner();
  Keep(owner_, Inputs(text), "mine");
  Keep(other, Inputs(text), "yours");
  cache_.Forget(owner_);
  EXPECT_EQ(Find(owner_, Inputs(text)), "");
  EXPECT_EQ(Find(other, Inputs(text)), "yours");
  cache_.Forget(other);
  EXPECT_EQ(cache_.bytes(), 0);
}

}  // namespace
}  // namespace swizzle
