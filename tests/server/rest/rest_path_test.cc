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
      {"/v2/models/a/trace/setting", RestAction::kTraceSettings, "a", ""},
      {"/v2/trace/setting", RestAction::kTraceSettings, "", ""},
      {"/v2/logging", RestAction::kLogSettings, "", ""},
      {"/v2/systemsharedmemory/status", RestAction::kSystemRegions, "", ""},
      {"/v1/embeddings", RestAction::kOpenAiEmbeddings, "", ""},
      {"/embed", RestAction::kTeiEmbed, "", ""},
      {"/embed_all", RestAction::kTeiEmbedAll, "", ""},
      {"/embed_sparse", RestAction::kTeiEmbedSparse, "", ""},
      {"/similarity", RestAction::kTeiSimilarity, "", ""},
      {"/tokenize", RestAction::kTeiTokenize, "", ""},
      {"/decode", RestAction::kTeiDecode, "", ""},
      {"/rerank", RestAction::kTeiRerank, "", ""},
      {"/predict", RestAction::kTeiPredict, "", ""},
      {"/health", RestAction::kReady, "", ""},
      {"/info", RestAction::kTeiInfo, "", ""},
      {"/v2/models/m/embed", RestAction::kTeiEmbed, "m", ""},
      {"/v2/models/m/embed_all", RestAction::kTeiEmbedAll, "m", ""},
      {"/v2/models/m/embed_sparse", RestAction::kTeiEmbedSparse, "m", ""},
      {"/v2/models/m/similarity", RestAction::kTeiSimilarity, "m", ""},
      {"/v2/models/m/tokenize", RestAction::kTeiTokenize, "m", ""},
      {"/v2/models/m/decode", RestAction::kTeiDecode, "m", ""},
      {"/v2/models/m/rerank", RestAction::kTeiRerank, "m", ""},
      {"/v2/models/m/predict", RestAction::kTeiPredict, "m", ""},
      {"/v2/models/m/info", RestAction::kTeiInfo, "m", ""},
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

TEST(RestPathTest, NamesRegions) {
  const struct {
    const char* target;
    RestAction action;
    const char* region;
    RestMethods methods;
  } cases[] = {
      {"/v2/systemsharedmemory/region/a%2Fb/status", RestAction::kSystemRegions, "a/b", RestMethods::kGet},
      {"/v2/systemsharedmemory/region/a/register", RestAction::kRegisterSystem, "a", RestMethods::kPost},
      {"/v2/systemsharedmemory/region/versions/unregister", RestAction::kUnregisterSystem, "versions",
       RestMethods::kPost},
      {"/v2/systemsharedmemory/unregister", RestAction::kUnregisterSystem, "", RestMethods::kPost},
      {"/v2/cudasharedmemory/region/a/status", RestAction::kCudaRegions, "a", RestMethods::kGet},
      {"/v2/cudasharedmemory/region/a/register", RestAction::kRegisterCuda, "a", RestMethods::kPost},
      {"/v2/cudasharedmemory/unregister", RestAction::kUnregisterCuda, "", RestMethods::kPost},
  };
  for (const auto& its : cases) {
    const std::optional<RestPath> path = ParseRestPath(its.target);
    ASSERT_TRUE(path.has_value()) << its.target;
    EXPECT_EQ(path->action, its.action) << its.target;
    EXPECT_EQ(path->region, its.region) << its.target;
    EXPECT_EQ(path->methods, its.methods) << its.target;
    EXPECT_EQ(path->model, "") << its.target;
    EXPECT_TRUE(FindAccessRule(path->rule).has_value()) << its.target;
  }
}

TEST(RestPathTest, OthersAreNone) {
  for (const char* const target :
       {"", "/", "v2", "/v3", "//v2", "/v2//", "/v2/models", "/v2/models//infer", "/v2/models/a/b",
        "/v2/models/a/versions", "/v2/models/a/versions//infer", "/v2/models/a/infer/b", "/v2/models/{model}/infer/",
        "*", "/v2/repository/models/a/versions/1/load", "/v2/models/a/versions/1/trace/setting",
        "/v2/systemsharedmemory/region//status", "/v2/systemsharedmemory/register",
        "/v2/systemsharedmemory/region/a"}) {
    const std::optional<RestPath> path = ParseRestPath(target);
    EXPECT_TRUE(!path.has_value() || path->model == "{model}") << target;
  }
}

}  // namespace
}  // namespace swizzle
