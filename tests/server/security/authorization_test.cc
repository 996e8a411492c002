#include "server/security/authorization.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

constexpr AccessRule kLoad = {"/load", AccessClass::kControl, true};
constexpr AccessRule kInfer = {"/infer", AccessClass::kInfer};
constexpr AccessRule kProbe = {"/probe", AccessClass::kProbe};

class AuthorizationTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(folder_ / "tokens") << text; }
  std::unique_ptr<Authorization> Load(const std::string& text) const {
    Write(text);
    auto loaded = Authorization::Load(folder_ / "tokens");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }
  static StatusCode Call(const Authorization& authorization, const AccessRule& rule, const std::string& shown,
                         ListenerKind listener = ListenerKind::kPublic) {
    return authorization.CheckCall(listener, rule, shown).code();
  }

  TemporaryFolder folder_;
};

TEST_F(AuthorizationTest, WithoutTokensAListenerSaysWhatItServes) {
  const Authorization open;
  EXPECT_EQ(Call(open, kInfer, ""), StatusCode::kOk);
  EXPECT_EQ(Call(open, kLoad, ""), StatusCode::kPermissionDenied);
  EXPECT_EQ(Call(open, kLoad, "", ListenerKind::kControl), StatusCode::kOk);
  EXPECT_EQ(open.CheckCall(ListenerKind::kControl, std::nullopt, "").code(), StatusCode::kPermissionDenied)
      << "what has no class";
  EXPECT_TRUE(open.CheckModel("any", "").ok());
}

TEST_F(AuthorizationTest, GoesByListenerClassAndToken) {
  const auto authorization = Load("infer token-to-infer-with\ncontrol token-to-control-with\n");
  EXPECT_EQ(Call(*authorization, kInfer, "Bearer token-to-infer-with"), StatusCode::kOk);
  EXPECT_EQ(Call(*authorization, kInfer, "bearer token-to-infer-with"), StatusCode::kOk);
  EXPECT_EQ(Call(*authorization, kInfer, "Bearer token-to-control-with"), StatusCode::kPermissionDenied);
  EXPECT_EQ(Call(*authorization, kLoad, "Bearer token-to-control-with"), StatusCode::kPermissionDenied);
  EXPECT_EQ(Call(*authorization, kLoad, "Bearer token-to-control-with", ListenerKind::kControl), StatusCode::kOk);
  EXPECT_EQ(Call(*authorization, kLoad, "Bearer token-to-infer-with", ListenerKind::kControl),
            StatusCode::kPermissionDenied);
  for (const char* shown : {"", "Bearer", "Bearer ", "token-to-infer-with", "Basic token-to-infer-with"}) {
    EXPECT_EQ(Call(*authorization, kInfer, shown), StatusCode::kUnauthenticated) << shown;
    EXPECT_EQ(Call(*authorization, kProbe, shown), StatusCode::kOk) << shown;
  }
  EXPECT_EQ(authorization->refused().unauthenticated, 5);
  EXPECT_EQ(authorization->refused().denied, 3);
}

TEST_F(AuthorizationTest, DeniesModelsInTheSameWordsWhicheverTheyAre) {
  const auto authorization = Load("infer models=bert token-of-bert-alone\ninfer token-of-all-models\n");
  EXPECT_TRUE(authorization->limits_models());
  EXPECT_TRUE(authorization->CheckModel("bert", "Bearer token-of-bert-alone").ok());
  EXPECT_EQ(authorization->CheckModel("other", "Bearer token-of-bert-alone").message(),
            "this token does not allow this model");
  EXPECT_TRUE(authorization->CheckModel("other", "Bearer token-of-all-models").ok());
  EXPECT_EQ(authorization->CheckModel("bert", "").code(), StatusCode::kUnauthenticated);
}

TEST_F(AuthorizationTest, ReplacesTokensAndKeepsThemWhereItCannot) {
  const auto authorization = Load("the-first-token-there-is\n");
  EXPECT_FALSE(authorization->Look().replaced);
  Write("infer models=bert the-second-token-there-is\n");
  EXPECT_TRUE(authorization->Look().replaced);
  EXPECT_TRUE(authorization->limits_models());
  EXPECT_EQ(Call(*authorization, kInfer, "Bearer the-first-token-there-is"), StatusCode::kUnauthenticated);
  EXPECT_EQ(Call(*authorization, kInfer, "Bearer the-second-token-there-is"), StatusCode::kOk);
  std::filesystem::remove(folder_ / "tokens");
  authorization->Look();
  EXPECT_FALSE(authorization->Look().error.ok());
  EXPECT_EQ(Call(*authorization, kInfer, "Bearer the-second-token-there-is"), StatusCode::kOk);
  EXPECT_EQ(authorization->counts().failed, 1);
}

TEST_F(AuthorizationTest, AMissingFileIsNamed) {
  const Status status = Authorization::Load(folder_ / "none").status();
  EXPECT_NE(status.message().find("none"), std::string::npos);
}

}  // namespace
}  // namespace swizzle
