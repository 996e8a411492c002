#include "server/rest/rest_path.h"

#include <gtest/gtest.h>

#include "server/security/access_class.h"

namespace swizzle {
namespace {

TEST(RestPathTest, NamesCallsAndModels) {
  const struct {
    const char* target;
    RestAction action;
    const char *model, *version;
  } cases[] = {
      {"/v2", RestAction::kServer, "", ""},
      {"/v2/", RestAction::kServer, "", ""},
      {"/v2?a=/b", RestAction::kServer, "", ""},
      {"/v2/health/live", RestAction::kLive, "", ""},
      {"/v2/models/stats", RestAction::kStatistics, "", ""},
      {"/v2/models/a", RestAction::kModel, "a", ""},
      {"/v2/models/a/versions/3", RestAction::kModel, "a", "3"},
      {"/v2/models/a%2Eb%/infer", RestAction::kInfer, "a.b%", ""},
      {"/v2/models/a/versions/3/infer", RestAction::kInfer, "a", "3"},
      {"/v2/models/versions/versions/versions/stats", RestAction::kStatistics, "versions", "versions"},
      {"/v2/repository/models/a/unload", RestAction::kUnload, "a", ""},
  };
  for (const auto& its : cases) {
    const std::optional<RestPath> path = ParseRestPath(its.target);
    ASSERT_TRUE(path.has_value()) << its.target;
    EXPECT_EQ(path->action, its.action) << its.target;
    EXPECT_EQ(path->model, its.model);
    EXPECT_EQ(path->version, its.version);
    EXPECT_TRUE(FindAccessRule(path->rule).has_value()) << "nobody may call what has no class";
  }
}

TEST(RestPathTest, OthersAreNone) {
  for (const char* const target : {"", "/", "v2", "/v3", "//v2", "/v2//", "/v2/models", "/v2/models//infer",
                                   "/v2/models/a/b", "/v2/models/a/versions", "/v2/models/a/versions//infer",
                                   "/v2/models/a/infer/b", "/v2/models/{model}/infer/", "*"}) {
    const std::optional<RestPath> path = ParseRestPath(target);
    EXPECT_TRUE(!path.has_value() || path->model == "{model}") << target;
  }
}

}  // namespace
}  // namespace swizzle
