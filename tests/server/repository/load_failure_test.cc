#include "server/repository/load_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace swizzle {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Told(const std::string& message) {
  return std::string(ReasonForClients(absl::InvalidArgumentError(message), "/srv/models/m/1").message());
}

TEST(ReasonForClientsTest, NamesNoFolderOfTheServer) {
  EXPECT_EQ(Told("/srv/models/m/1/model.onnx: it is no model"), "model.onnx: it is no model");
  EXPECT_EQ(Told("/srv/models/m/config.pbtxt and /srv/models/n"), "config.pbtxt and n");
  EXPECT_EQ(ReasonForClients(absl::NotFoundError("x"), "/a/b/c").code(), StatusCode::kNotFound);
}

TEST(ReasonForClientsTest, QuotesNoWholeFile) {
  const std::string told = Told("'name' is '" + std::string(800'000, 'x') + "', but the directory is 'm'");
  EXPECT_LE(told.size(), kMostReasonBytes);
  EXPECT_THAT(told, StartsWith("'name' is 'xxx"));
  EXPECT_THAT(told, HasSubstr(" bytes left out) ... x"));
  EXPECT_THAT(told, EndsWith("xxx', but the directory is 'm'"));
  const std::string longest(kMostReasonBytes, 'x');
  EXPECT_EQ(Told(longest), longest);
  EXPECT_LE(Told(longest + "x").size(), kMostReasonBytes);
}

TEST(ReasonForClientsTest, CutsNoCharacter) {
  for (int before = 0; before < 4; ++before) {
    std::string message(static_cast<size_t>(before), 'a');
    for (int i = 0; i < 1000; ++i) message += "\xF0\x9F\x90\x98";
    const std::string told = Told(message);
    EXPECT_LE(told.size(), kMostReasonBytes);
    EXPECT_EQ((told.find(' ') - static_cast<size_t>(before)) % 4, 0u) << told;
    EXPECT_EQ((told.size() - told.rfind(' ') - 1) % 4, 0u) << told;
  }
}

}  // namespace
}  // namespace swizzle
