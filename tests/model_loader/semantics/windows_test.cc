#include "model_loader/semantics/windows.h"

#include <array>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using AttributeMap = std::map<std::string, Attribute>;
using Ints = std::vector<int64_t>;

Node Pool(const AttributeMap& attributes) { return {"AveragePool", "", "pool", {0}, {1}, attributes}; }

AttributeMap Counting(const Ints& kernel, const Ints& strides, const Ints& pads) {
  constexpr int64_t kYes = 1;
  return {
      {"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, {"ceil_mode", kYes}, {"count_include_pad", kYes}};
}

struct Resolved {
  const char* name;
  AttributeMap attributes;
  Shape input;
  Shape kernel;  // of a convolution's weight
  Window window;
  int64_t height, width;
  std::array<int64_t, 4> padded_before{};
};

void PrintTo(const Resolved& resolved, std::ostream* out) { *out << resolved.name; }

class ResolveWindowTest : public ::testing::TestWithParam<Resolved> {};

TEST_P(ResolveWindowTest, Resolves) {
  const Resolved& expected = GetParam();
  const auto resolved = ResolveWindow(Pool(expected.attributes), expected.input, expected.kernel);
  ASSERT_THAT(resolved, IsOk());
  EXPECT_EQ(resolved->window, expected.window);
  EXPECT_EQ(resolved->output_height, expected.height);
  EXPECT_EQ(resolved->output_width, expected.width);
  EXPECT_EQ(resolved->padded_before, expected.padded_before);
}

// Windows are {kernel h w, stride h w, pads top left bottom right, dilation h w, count_include_pad}.
const Resolved kResolved[] = {
    {"Plain", {{"kernel_shape", Ints{3, 2}}}, {-1, 4, 7, 7}, {}, {3, 2, 1, 1, 0, 0, 0, 0, 1, 1, false}, 5, 6},
    {"OfWeight", {}, {-1, 4, 7, 7}, {3, 2}, {3, 2, 1, 1, 0, 0, 0, 0, 1, 1, false}, 5, 6},
    {"PadsAreTopLeftBottomRight",
     {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{0, 1, 2, 3}}, {"strides", Ints{2, 3}}},
     {2, 4, 7, 7},
     {},
     {3, 3, 2, 3, 0, 1, 2, 3, 1, 1, false},
     4,
     3},
    {"Dilated",
     {{"kernel_shape", Ints{3, 3}}, {"dilations", Ints{2, 3}}},
     {-1, 4, 7, 7},
     {},
     {3, 3, 1, 1, 0, 0, 0, 0, 2, 3, false},
     3,
     1},
    {"CountsPadding",
     {{"kernel_shape", Ints{1, 1}}, {"count_include_pad", int64_t{1}}},
     {-1, 4, 7, 7},
     {},
     {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, true},
     7,
     7},
    {"SameUpper",
     {{"kernel_shape", Ints{3, 4}}, {"strides", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}},
     {-1, 4, 7, 8},
     {},
     {3, 4, 2, 2, 1, 1, 1, 1, 1, 1, false},
     4,
     4},
    {"SameUpperPutsTheOddOneAfter",
     {{"kernel_shape", Ints{2, 2}}, {"auto_pad", "SAME_UPPER"}},
     {-1, 4, 7, 7},
     {},
     {2, 2, 1, 1, 0, 0, 1, 1, 1, 1, false},
     7,
     7},
    {"SameLowerPutsTheOddOneBefore",
     {{"kernel_shape", Ints{2, 2}}, {"auto_pad", "SAME_LOWER"}},
     {-1, 4, 7, 7},
     {},
     {2, 2, 1, 1, 1, 1, 0, 0, 1, 1, false},
     7,
     7},
    {"Valid",
     {{"kernel_shape", Ints{2, 2}}, {"auto_pad", "VALID"}},
     {-1, 4, 7, 7},
     {},
     {2, 2, 1, 1, 0, 0, 0, 0, 1, 1, false},
     6,
     6},
    {"CeilModePadsToAPartialWindow",
     {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 3}}, {"ceil_mode", int64_t{1}}},
     {-1, 4, 7, 8},
     {},
     {2, 2, 2, 3, 0, 0, 1, 0, 1, 1, false},
     4,
     3},
    {"CeilModeSkipsWindowsThatStartInThePadding",
     {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"ceil_mode", int64_t{1}}},
     {-1, 4, 3, 3},
     {},
     {2, 2, 2, 2, 1, 1, 1, 1, 1, 1, false},
     2,
     2},
    {"CeilModeOfWholeWindowsCountsPadding",
     Counting({2, 2}, {2, 2}, {1, 0, 0, 1}),
     {-1, 4, 7, 7},
     {},
     {2, 2, 2, 2, 1, 0, 0, 1, 1, 1, true},
     4,
     4},
    {"CeilModeCountsNotWhatItPads",
     Counting({2, 2}, {2, 2}, {0, 0, 0, 0}),
     {-1, 4, 7, 8},
     {},
     {2, 2, 2, 2, 0, 0, 1, 0, 1, 1, false},
     4,
     4},
    {"CeilModeLeavesWhatCountsBefore",
     Counting({3, 3}, {2, 2}, {1, 0, 1, 1}),
     {-1, 4, 6, 6},
     {},
     {3, 3, 2, 2, 0, 0, 1, 0, 1, 1, false},
     4,
     3,
     {1, 0, 1, 1}},
};

INSTANTIATE_TEST_SUITE_P(Windows, ResolveWindowTest, ::testing::ValuesIn(kResolved),
                         [](const auto& resolved) { return std::string(resolved.param.name); });

TEST(WindowsTest, RefusesWhatDoesNotFit) {
  const auto resolve = [](const AttributeMap& attributes, const Shape& input = {-1, 4, 7, 7},
                          const Shape& kernel = {}) { return ResolveWindow(Pool(attributes), input, kernel); };
  const Attribute k3 = Ints{3, 3};
  EXPECT_THAT(resolve({}), IsError(kInvalid, "kernel_shape holds 0"));
  EXPECT_THAT(resolve({{"kernel_shape", Ints{3}}}), IsError(kInvalid, "kernel_shape has 1 numbers instead of 2"));
  EXPECT_THAT(resolve({{"kernel_shape", Ints{8, 1}}}), IsError(kInvalid, "does not fit"));
  EXPECT_THAT(resolve({{"kernel_shape", int64_t{3}}}), IsError(kInvalid, "not a list of integers"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}, {"strides", Ints{1, 0}}}), IsError(kInvalid, "strides holds 0"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}, {"pads", Ints{0, 0}}}), IsError(kInvalid, "pads has 2 numbers"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}, {"pads", Ints{0, 0, 0, -1}}}), IsError(kInvalid, "pads holds -1"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}, {"pads", Ints{0, 0, 0, int64_t{1} << 40}}}),
              IsError(kInvalid, "pads holds"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}, {"dilations", Ints{0, 1}}}), IsError(kInvalid, "dilations holds 0"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}, {"auto_pad", "SAME"}}), IsError(kInvalid, "auto_pad 'SAME'"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}, {"auto_pad", "VALID"}, {"pads", Ints{1, 0, 0, 0}}}),
              IsError(kInvalid, "both pads and auto_pad"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}}, {-1, 4, 7, 7}, {5, 5}), IsError(kInvalid, "differs from its weight's"));
  EXPECT_THAT(resolve({{"kernel_shape", k3}}, {-1, 4, 7}), IsError(kUnsupported, "two spatial dimensions"));
}

TEST(WindowsTest, AttributesRoundTrip) {
  const Window window{3, 5, 2, 4, 1, 2, 3, 4, 5, 6, true};
  Node node;
  SetWindow(node, window);
  EXPECT_EQ(WindowOf(node), window);
}

}  // namespace
}  // namespace swizzle
