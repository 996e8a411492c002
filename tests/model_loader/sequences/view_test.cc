#include "model_loader/sequences/view.h"

#include "gtest/gtest.h"

namespace swizzle {
namespace {

constexpr Whole kB{1, 1, 0}, kS{1, 0, 1}, kBS{1, 1, 1};
const Axis kBatch{AxisKind::kBatch, kB, 0};
const Axis kLength{AxisKind::kLength, kS, 0};

Axis Channels(int64_t count, int64_t stride = 1) { return {AxisKind::kChannels, {count}, stride}; }
Axis Places(int64_t count, int64_t stride = 1) { return {AxisKind::kPlaces, {count}, stride}; }
Axis Repeat(Whole count) { return {AxisKind::kRepeat, count, 0}; }

// [batch, length, 12]
View Activation() { return {{{kBatch}, {kLength}, {Channels(12)}}}; }

TEST(ViewTest, SplitsAndJoinsHeads) {
  const auto heads = Reshaped(Activation(), {kB, kS, {3}, {4}});
  ASSERT_TRUE(heads);
  EXPECT_EQ(*heads, (View{{{kBatch}, {kLength}, {Channels(3, 4)}, {Channels(4)}}}));
  const View by_head = Transposed(*heads, {0, 2, 1, 3});
  EXPECT_EQ(Text(by_head.shape()), "[B,3,S,4]");
  const auto flat = Reshaped(by_head, {{3, 1, 0}, kS, {4}});
  ASSERT_TRUE(flat);
  EXPECT_EQ(flat->dims[0], (Axes{kBatch, Channels(3, 4)}));
  EXPECT_EQ(Reshaped(*flat, {kB, {3}, kS, {4}}), by_head);
  EXPECT_EQ(Reshaped(Transposed(by_head, {0, 2, 1, 3}), {kB, kS, {12}}), Activation());
}

TEST(ViewTest, TokensInOneDimension) {
  const auto flat = Reshaped(Activation(), {kBS, {12}});
  ASSERT_TRUE(flat);
  EXPECT_EQ(flat->dims[0], (Axes{kBatch, kLength}));
  EXPECT_EQ(Reshaped(*flat, {kB, {1}, kS, {12}}), (View{{{kBatch}, {}, {kLength}, {Channels(12)}}}));
}

TEST(ViewTest, WhatDoesNotDivideIsNothing) {
  EXPECT_EQ(Reshaped(Activation(), {kS, kB, {12}}), std::nullopt);
  EXPECT_EQ(Reshaped(Activation(), {kB, kS, {5}, {4}}), std::nullopt);
  EXPECT_EQ(Reshaped(Activation(), {kB, kS}), std::nullopt);
  EXPECT_EQ(Reshaped(Activation(), {kB, kS, {12}, {2}}), std::nullopt);
  EXPECT_EQ(Reshaped(Activation(), {kB, kS, {-12}}), std::nullopt);
  EXPECT_EQ(Reshaped(Activation(), {kB, {0}, {12}}), std::nullopt);
  const View swapped = Transposed(Activation(), {0, 2, 1});
  EXPECT_EQ(Text(Reshaped(swapped, {kB, {12, 0, 1}})->shape()), "[B,12S]");  // as long as nobody takes it for channels
  EXPECT_EQ(Reshaped(swapped, {kB, kS, {12}}), std::nullopt);
}

// A fixed length may be a channel count too: it is the order that tells them apart.
TEST(ViewTest, FixedSizesKeepTheirMeaning) {
  const Axis length{AxisKind::kLength, {8}, 0};
  const View view{{{}, {length}, {Channels(8)}}};
  EXPECT_EQ(Reshaped(view, {{8}, {2}, {4}}), (View{{{length}, {Channels(2, 4)}, {Channels(4)}}}));
  EXPECT_EQ(Reshaped(view, {{2}, {4}, {8}}), (View{{{Places(2, 4)}, {Places(4)}, {Channels(8)}}}));
}

TEST(ViewTest, CutsPositionsOfAFixedLengthAndJoinsThem) {
  const Axis length{AxisKind::kLength, {24}, 0};
  const View image{{{kBatch}, {length}, {Channels(3)}}};
  const auto cut = Reshaped(image, {kB, {2}, {2}, {6}, {3}});
  ASSERT_TRUE(cut);
  EXPECT_EQ(*cut, (View{{{kBatch}, {Places(2, 12)}, {Places(2, 6)}, {Places(6)}, {Channels(3)}}}));
  EXPECT_EQ(Reshaped(*cut, {kB, {24}, {3}}), image);
  const View turned = Transposed(*cut, {0, 2, 1, 3, 4});
  const auto windows = Reshaped(turned, {{2, 1, 0}, {12}, {3}});
  ASSERT_TRUE(windows);
  EXPECT_EQ(*windows, (View{{{kBatch, Places(2, 6)}, {Places(2, 12), Places(6)}, {Channels(3)}}}));
  const View ordered = WithPlacesInOrder(*windows);
  EXPECT_EQ(ordered, (View{{{kBatch, Places(2, 12)}, {Places(12)}, {Channels(3)}}}));
  EXPECT_EQ(Reshaped(ordered, {kB, {24}, {3}}), image);
  EXPECT_EQ(Reshaped(*windows, {kB, {24}, {3}})->dims[1], (Axes{Places(2, 6), Places(2, 12), Places(6)}));
}

TEST(ViewTest, Broadcasts) {
  const View positions{{{}, {kLength}, {Channels(12)}}};
  EXPECT_EQ(Broadcast(positions, Activation()), Activation());
  EXPECT_EQ(Broadcast(Activation(), View{{{Channels(12)}}}), Activation());
  EXPECT_EQ(Broadcast(View{{{kLength}, {}}}, View{{{}, {Repeat(kB)}}}), (View{{{kLength}, {Repeat(kB)}}}));
  EXPECT_EQ(Broadcast(View{{{kLength}}}, View{{{Repeat(kS)}}}), (View{{{kLength}}}));
  EXPECT_EQ(Broadcast(View{{{kLength}}}, View{{{kBatch}}}), std::nullopt);
  EXPECT_EQ(Expanded(View{{{kBatch}, {}, {}, {kLength}}}, {{1}, {3}, kS, {1}}),
            (View{{{kBatch}, {Repeat({3})}, {Repeat(kS)}, {kLength}}}));
  EXPECT_EQ(Expanded(Activation(), {{7}}), std::nullopt);
}

TEST(ViewTest, ListsChannelsInTheOrderOfAxes) {
  EXPECT_EQ(ChannelsOf({Channels(2, 6), kLength, Channels(3)}, 1), (std::vector<int64_t>{1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(ChannelsOf({kBatch}, 5), std::vector<int64_t>{5});
}

}  // namespace
}  // namespace swizzle
