// What the pack command says of layers that a named format cannot hold, or holds badly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "kernels/format/csr.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/packed/packed_writer.h"
#include "nlohmann/json.hpp"
#include "tests/support/network_builder.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::pack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PackFormats : public ::testing::Test {
 protected:
  // What is printed for a model, by default of scattered zeros.
  std::string Pack(const std::string& format) {
    SWIZZLE_CHECK(WritePacked(network_, folder_ / "m.swz").ok());
    std::ostringstream out, err;
    Terminal terminal{out, err, false};
    PackCommand command;
    command.model = folder_ / "m.swz";
    command.output = folder_ / "p.swz";
    command.format = format;
    EXPECT_TRUE(Execute(command, terminal).ok());
    return out.str();
  }

  // That inspect tells of each of these formats what a file has that is packed so.
  void ExpectTold(const std::vector<std::string>& formats) {
    Pack("auto");
    std::ostringstream out, err;
    Terminal terminal{out, err, false};
    InspectCommand inspect;
    inspect.model = folder_ / "m.swz";
    inspect.json = true;
    inspect.tuning_budget = {};
    ASSERT_TRUE(Execute(inspect, terminal).ok());
    told_ = nlohmann::json::parse(out.str())["packed_bytes"];
    for (const std::string& format : formats) {
      Pack(format);
      const auto model = LoadModel(folder_ / "p.swz");
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ(told_[format]["bytes"], model->network.StoredWeightBytes()) << format;
    }
  }

  Network network_ = swizzle::testing::MakeRandomNetwork({.sparsity = 0.9});
  nlohmann::json told_;  // by inspect, by format
  TemporaryFolder folder_;
};

TEST_F(PackFormats, SaysHowManyLayersANamedFormatCannotHoldAndWhy) {
  const std::string printed = Pack("sr-bcrs");
  EXPECT_THAT(printed, HasSubstr("sparse layers cannot be stored as sr-bcrs and keep their format; the first: "));
  EXPECT_THAT(printed, HasSubstr("share too few columns for SR-BCRS"));
}

TEST_F(PackFormats, InspectSaysWhatEachTakes) {
  ExpectTold({"csr", "bitmap", "auto"});
  EXPECT_FALSE(told_.contains("sr-bcrs")) << "no layer's columns are shared so";
}

// Plans make queries, keys and values one product. Files have three.
TEST_F(PackFormats, InspectSaysWhatEachTakesOfAnEncoder) {
  network_ = swizzle::testing::MakeRandomEncoder({.sparsity = 0.9});
  ExpectTold({"csr", "bitmap", "auto"});
}

// A linear layer of scattered zeros, whose blocks are mostly filling.
Network Linear(int64_t rows = 64) {
  swizzle::testing::NetworkBuilder builder(1, 0);
  const int input = builder.Value("x", 128), output = builder.Linear(input, rows, 0.9);
  const NetworkPort from = builder.Port(input, "x"), to = builder.Port(output, "y");
  Network network = builder.Finish();
  network.inputs = {from}, network.outputs = {to};
  return network;
}

// As of weights that were rounded: some of what pruning kept of a vector is zero.
TEST_F(PackFormats, AutoGroupsRowsThatAreAlike) {
  network_ = Linear(128);
  DenseMatrix dense{128, 128, std::vector<float>(128 * 128)};
  for (const int64_t col : {3, 4, 5, 17, 40, 41, 42, 43, 77, 90, 91, 92, 111}) {
    for (int64_t row = 0; row < 128; ++row) dense.values[row * 128 + col] = (row * 13 + col) % 41 == 0 ? 0.0f : 1.0f;
  }
  network_.weights[0].matrix = CsrMatrix::FromDense(dense);
  Pack("auto");
  const auto model = LoadModel(folder_ / "p.swz");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->network.weights[0].format(), Format::kShflBw);
  EXPECT_EQ(model->network.weights[0].ToDense().values, dense.values);
}

TEST_F(PackFormats, SaysWhatAutoWouldTakeWhereANamedFormatTakesFarMore) {
  network_ = Linear();
  EXPECT_THAT(Pack("hb-ell"), HasSubstr("--format=auto would take "));
  for (const char* format : {"csr", "bitmap", "auto"}) EXPECT_THAT(Pack(format), Not(HasSubstr("would"))) << format;
}

TEST_F(PackFormats, SaysNothingWhereAllAreHeld) {
  for (const char* format : {"csr", "hb-ell", "auto"}) EXPECT_THAT(Pack(format), Not(HasSubstr("cannot"))) << format;
}

}  // namespace
}  // namespace swizzle::pack
