// What the prune command says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "model_loader/pack/commands.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PruneText : public ::testing::Test {
 protected:
  // What it prints, or the error's message.
  std::string Prune(PruneCommand command) const {
    std::ostringstream out, err;
    Terminal terminal{out, err, false};
    command.output = folder_ / "p.onnx";
    const auto outcome = Execute(command, terminal);
    return outcome.ok() ? out.str() : std::string(outcome.status().message());
  }

  const std::string model_ = SWIZZLE_SOURCE_DIR "/deploy/models/mobilenet_v1_fashion.onnx";
  const TemporaryFolder folder_;
};

// The first 1x1 layer has two blocks of 32x32, and 80 % of two are both. Trained for hours, such a network guesses.
TEST_F(PruneText, TellsOfLayersOfWhichNothingIsLeft) {
  PruneCommand command;
  command.model = model_;
  command.method = PruneMethod::kBlock;
  command.vector_rows = 32;
  command.sparsity = 0.8;
  const std::string much = Prune(command);
  EXPECT_THAT(much, HasSubstr("nothing left"));
  EXPECT_THAT(much, HasSubstr("leave such layers out with --skip"));
  command.sparsity = 0.1;
  EXPECT_THAT(Prune(command), Not(HasSubstr("nothing")));
}

TEST_F(PruneText, NamesAFileOnce) {
  const std::string missing = folder_ / "none.onnx", scores = folder_ / "none.npz";
  PruneCommand command;
  command.model = missing;
  EXPECT_EQ(Prune(command), missing + ": there is no such file");
  command.model = model_;
  command.scores = scores;
  EXPECT_EQ(Prune(command), scores + ": there is no such file");
}

}  // namespace
}  // namespace swizzle::pack
