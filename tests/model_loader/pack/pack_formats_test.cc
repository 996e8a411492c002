// What the pack command says of layers that a named format cannot hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/packed/packed_writer.h"
#include "nlohmann/json.hpp"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PackFormats : public ::testing::Test {
 protected:
  // What is printed for a model of scattered zeros.
  std::string Pack(const std::string& format) {
    SWIZZLE_CHECK(WritePacked(swizzle::testing::MakeRandomNetwork({.sparsity = 0.9}), folder_ / "m.swz").ok());
    std::ostringstream out, err;
    Terminal terminal{out, err, false};
    PackCommand command;
    command.model = folder_ / "m.swz";
    command.output = folder_ / "p.swz";
    command.format = format;
    EXPECT_TRUE(Execute(command, terminal).ok());
    return out.str();
  }

  TemporaryFolder folder_;
};

TEST_F(PackFormats, SaysHowManyLayersANamedFormatCannotHoldAndWhy) {
  const std::string printed = Pack("sr-bcrs");
  EXPECT_THAT(printed, HasSubstr("sparse layers cannot be stored as sr-bcrs and keep their format; the first: "));
  EXPECT_THAT(printed, HasSubstr("share too few columns for SR-BCRS"));
}

TEST_F(PackFormats, InspectSaysWhatEachTakes) {
  Pack("csr");
  std::ostringstream out, err;
  Terminal terminal{out, err, false};
  InspectCommand inspect;
  inspect.model = folder_ / "m.swz";
  inspect.json = true;
  inspect.tuning_budget = {};
  ASSERT_TRUE(Execute(inspect, terminal).ok());
  const auto packed = nlohmann::json::parse(out.str())["packed_bytes"];
  for (const char* format : {"csr", "bitmap", "auto"}) {
    Pack(format);
    const auto model = LoadModel(folder_ / "p.swz");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(packed[format]["bytes"], model->network.StoredWeightBytes()) << format;
  }
  EXPECT_FALSE(packed.contains("sr-bcrs")) << "no layer's columns are shared so";
}

TEST_F(PackFormats, SaysNothingWhereAllAreHeld) {
  for (const char* format : {"csr", "hb-ell", "auto"}) EXPECT_THAT(Pack(format), Not(HasSubstr("cannot"))) << format;
}

}  // namespace
}  // namespace swizzle::pack
