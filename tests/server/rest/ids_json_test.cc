#include "server/rest/ids_json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;

TEST(IdsJson, IdsAreOfOneTextOrOfSeveral) {
  const auto one = ReadIdsRequest(R"({"skip_special_tokens": null, "ids": [7, 0, 4294967295], "other": [{"ids": 1}]})");
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT(one->ids, ElementsAre(7, 0, IdsRequest::kNoId));
  EXPECT_THAT(one->ends, ElementsAre(3u));
  EXPECT_TRUE(one->skip_special_tokens);
  const auto several = ReadIdsRequest(R"({"ids": [[7], [1, 2]], "skip_special_tokens": false})");
  ASSERT_THAT(several, IsOk());
  EXPECT_THAT(several->ids, ElementsAre(7, 1, 2));
  EXPECT_THAT(several->ends, ElementsAre(1u, 3u));
  EXPECT_FALSE(several->skip_special_tokens);
}

TEST(IdsJson, SaysWhatIsWrong) {
  struct Case {
    const char* text;
    const char* said;
  };
  for (const Case& its : {
           Case{"", "no JSON"},
           Case{"[1]", "must be a JSON object"},
           Case{"7", "must be a JSON object"},
           Case{R"({"ids": [1}]})", "no JSON: byte"},
           Case{"{}", "must have 'ids'"},
           Case{R"({"ids": null})", "must have 'ids'"},
           Case{R"({"ids": 7})", "must be an array of ids"},
           Case{R"({"ids": {"a": 1}})", "must be an array of ids"},
           Case{R"({"ids": []})", "'ids' must not be empty"},
           Case{R"({"ids": [[1], []]})", "element 1 of 'ids' must not be empty"},
           Case{R"({"ids": [1, [2]]})", "its element 1 is neither"},
           Case{R"({"ids": [[1], 2]})", "its element 1 is neither"},
           Case{R"({"ids": [[1, [2]]]})", "its element 0 is neither"},
           Case{R"({"ids": [1, -2]})", "its element 1 is neither"},
           Case{R"({"ids": [1.5]})", "whole numbers from 0 to 4294967295"},
           Case{R"({"ids": [4294967296]})", "whole numbers from 0 to 4294967295"},
           Case{R"({"ids": ["a"]})", "its element 0 is neither"},
           Case{R"({"ids": [true]})", "its element 0 is neither"},
           Case{R"({"ids": [null]})", "its element 0 is neither"},
           Case{R"({"ids": [{}]})", "its element 0 is neither"},
           Case{R"({"ids": [1], "ids": [2]})", "'ids' is there twice"},
           Case{R"({"ids": [1], "skip_special_tokens": 1})", "'skip_special_tokens' must be true or false"},
           Case{R"({"ids": [1], "skip_special_tokens": [true]})", "'skip_special_tokens' must be true or false"},
       }) {
    EXPECT_THAT(ReadIdsRequest(its.text), IsError(StatusCode::kInvalidArgument, its.said)) << its.text;
  }
  const std::string deep = R"({"a": )" + std::string(100, '[');
  EXPECT_THAT(ReadIdsRequest(deep), IsError(StatusCode::kInvalidArgument, "nests deeper"));
}

}  // namespace
}  // namespace swizzle
