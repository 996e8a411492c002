// The tool, run against a server in this process.
#ifndef SWIZZLE_TESTS_CLIENT_CLI_FIXTURE_H_
#define SWIZZLE_TESTS_CLIENT_CLI_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/cli.h"
#include "client/cli/command.h"
#include "client/npy.h"
#include "nlohmann/json.hpp"
#include "tests/client/fake_server.h"

namespace swizzle::client {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  CliTest()
      : directory_(std::filesystem::path(::testing::TempDir()) /
                   ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(directory_);
  }
  ~CliTest() override { std::filesystem::remove_all(directory_); }

  Outcome Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"swizzle", "--address=" + server_.address()});
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::ostringstream out, err;
    const int code = RunCli(static_cast<int>(argv.size()), argv.data(), out, err, Watched());
    return {code, out.str(), err.str()};
  }

  nlohmann::json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Outcome outcome = Run(std::move(arguments));
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }

  template <typename T>
  std::string Save(const std::string& name, const std::string& datatype, Shape shape, const std::vector<T>& values) {
    std::string file = (directory_ / name).string();
    EXPECT_TRUE(WriteNpy(file, MakeTensor<T>("", datatype, std::move(shape), values)).ok());
    return file;
  }

  FakeServer server_;
  std::filesystem::path directory_;
};

}  // namespace swizzle::client

#endif  // SWIZZLE_TESTS_CLIENT_CLI_FIXTURE_H_
