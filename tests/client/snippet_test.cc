#include "client/cli/snippet.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Callee Small() {
  Callee callee;
  callee.address = "localhost:8000";
  callee.model = "it's a/model";
  callee.inputs = {{"x", "FP32", {1, 3}},
                   {"ids", "INT64", {1, 2}, InputPlan::Values::kIds, 30000},
                   {"mask", "INT32", {1, 2}, InputPlan::Values::kOnes}};
  callee.outputs = {"y"};
  return callee;
}

TEST(SnippetTest, SmallInputsStandInTheCommand) {
  EXPECT_EQ(CurlCommand(Small()),
            "curl -sS http://localhost:8000/v2/models/it%27s%20a%2Fmodel/infer -H 'Content-Type: application/json' \\\n"
            "  -d '{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":[0.0,0.1,0.2]},"
            "{\"name\":\"ids\",\"shape\":[1,2],\"datatype\":\"INT64\",\"data\":[0,1]},"
            "{\"name\":\"mask\",\"shape\":[1,2],\"datatype\":\"INT32\",\"data\":[1,1]}]}'\n");
}

TEST(SnippetTest, LargeInputsAndHalvesFollowTheJson) {
  Callee callee;
  callee.address = "localhost:8000";
  callee.model = "m";
  callee.inputs = {{"it's", "FP32", {1, 3, 224, 224}}, {"half", "FP16", {2}}};
  const std::string command = CurlCommand(callee);
  const std::string json =
      R"({"inputs":[{"name":"it's","shape":[1,3,224,224],"datatype":"FP32","parameters":{"binary_data_size":602112}},)"
      R"({"name":"half","shape":[2],"datatype":"FP16","parameters":{"binary_data_size":4}}]})";
  EXPECT_THAT(command, AllOf(HasSubstr(R"("it'\''s")"), HasSubstr("head -c 602116 /dev/zero"),
                             HasSubstr("'Inference-Header-Content-Length: " + std::to_string(json.size()) + "'")));
}

TEST(SnippetTest, PythonDrawsWhatTheModelTakes) {
  EXPECT_EQ(PythonProgram(Small()), R"(import numpy
import tritonclient.http as http

client = http.InferenceServerClient("localhost:8000")
inputs = [
    http.InferInput("x", [1, 3], "FP32"),
    http.InferInput("ids", [1, 2], "INT64"),
    http.InferInput("mask", [1, 2], "INT32"),
]
inputs[0].set_data_from_numpy(numpy.random.random_sample([1, 3]).astype(numpy.float32))
inputs[1].set_data_from_numpy(numpy.random.randint(0, 30000, [1, 2]).astype(numpy.int64))
inputs[2].set_data_from_numpy(numpy.ones([1, 2], numpy.int32))
answer = client.infer("it's a/model", inputs)
print("y", answer.as_numpy("y"))
)");
}

TEST(SnippetTest, CertificatesAndTokensAreNamed) {
  Callee callee = Small();
  EXPECT_THAT(CurlCommand(callee), Not(HasSubstr("https")));
  callee.connection.tls_ca = "ca.pem";
  callee.connection.token_file = "token";
  EXPECT_THAT(CurlCommand(callee),
              AllOf(HasSubstr("curl -sS --cacert 'ca.pem' -H \"authorization: Bearer $(cat 'token')\""),
                    HasSubstr(" https://localhost:8000/")));
  EXPECT_THAT(PythonProgram(callee),
              AllOf(HasSubstr(R"(("localhost:8000", ssl=True, ssl_options={"ca_certs": "ca.pem"}))"),
                    HasSubstr(R"(headers={"authorization": "Bearer " + open("token").read().strip()})")));
}

}  // namespace
}  // namespace swizzle::client
