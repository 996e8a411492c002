#include "client/cli/snippet.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace swizzle::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostInJson = 512;  // elements; more would fill the screen

// REQUIRES: no dimension is free, and the product was drawn already.
int64_t Elements(const InputPlan& input) { return ElementCount(input.shape).value_or(0); }

bool IsHalf(const InputPlan& input) { return input.datatype == "FP16" || input.datatype == "BF16"; }

bool StandsInJson(const InputPlan& input) {
  return input.datatype == "BYTES" || (Elements(input) <= kMostInJson && !IsHalf(input));
}

Json Element(const InputPlan& input, int64_t index) {
  if (input.datatype == "BYTES") return "text";
  if (input.datatype == "BOOL") return index % 2 == 0;
  if (absl::StrContains(input.datatype, "FP")) return static_cast<double>(index % 10) / 10;
  if (input.values == InputPlan::Values::kOnes) return 1;
  return input.values == InputPlan::Values::kIds ? index % std::min<int64_t>(input.ids, 100) : index % 2;
}

// 'it'\''s'
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Text(const Json& json) { return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace); }

// Python reads what JSON writes, but pairs of surrogates, which names hardly have.
std::string PythonText(const std::string& text) { return Text(Json(text)); }

std::string UrlText(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(letter)) != 0 || absl::StrContains("-_.~", std::string(1, letter));
    if (plain) {
      text.push_back(letter);
    } else {
      absl::StrAppendFormat(&text, "%%%02X", static_cast<unsigned char>(letter));
    }
  }
  return text;
}

bool HasTls(const ConnectionFlags& flags) {
  return flags.tls || !flags.tls_ca.empty() || !flags.tls_certificate.empty();
}

std::string CurlFlags(const ConnectionFlags& flags) {
  std::string text;
  if (!flags.tls_ca.empty()) absl::StrAppend(&text, " --cacert ", Quoted(flags.tls_ca));
  if (!flags.tls_certificate.empty()) {
    absl::StrAppend(&text, " --cert ", Quoted(flags.tls_certificate), " --key ", Quoted(flags.tls_key));
  }
  if (!flags.token_file.empty()) {
    absl::StrAppend(&text, " -H \"authorization: Bearer $(cat ", Quoted(flags.token_file), ")\"");
  }
  return text;
}

std::string NumpyType(const std::string& datatype) {
  if (datatype == "BOOL") return "bool";
  if (datatype == "BYTES") return "object";
  if (datatype == "FP16") return "numpy.float16";
  if (datatype == "FP64") return "numpy.float64";
  if (absl::StrContains(datatype, "FP") || datatype == "BF16") return "numpy.float32";
  return absl::StrCat("numpy.", absl::AsciiStrToLower(datatype));
}

std::string PythonArray(const InputPlan& input) {
  const std::string shape = absl::StrCat("[", absl::StrJoin(input.shape, ", "), "]"), type = NumpyType(input.datatype);
  if (input.datatype == "BYTES") return absl::StrCat("numpy.full(", shape, ", \"text\", object)");
  if (input.values == InputPlan::Values::kOnes) return absl::StrCat("numpy.ones(", shape, ", ", type, ")");
  if (absl::StrContains(input.datatype, "FP") || input.datatype == "BF16") {
    return absl::StrCat("numpy.random.random_sample(", shape, ").astype(", type, ")");
  }
  int64_t most = input.values == InputPlan::Values::kIds ? input.ids : 2;
  if (DatatypeBytes(input.datatype) == 1) most = std::min<int64_t>(most, 128);
  return absl::StrCat("numpy.random.randint(0, ", most, ", ", shape, ").astype(", type, ")");
}

std::string PythonClient(const Callee& callee) {
  const ConnectionFlags& flags = callee.connection;
  std::string arguments = PythonText(callee.address);
  if (HasTls(flags)) absl::StrAppend(&arguments, ", ssl=True");
  std::vector<std::string> files;
  const auto add = [&](const char* key, const std::string& file) {
    if (!file.empty()) files.push_back(absl::StrCat("\"", key, "\": ", PythonText(file)));
  };
  add("ca_certs", flags.tls_ca);
  add("certfile", flags.tls_certificate);
  add("keyfile", flags.tls_key);
  if (!files.empty()) absl::StrAppend(&arguments, ", ssl_options={", absl::StrJoin(files, ", "), "}");
  return absl::StrCat("http.InferenceServerClient(", arguments, ")");
}

}  // namespace

std::string CurlCommand(const Callee& callee) {
  Json request = {{"inputs", Json::array()}};
  int64_t zeros = 0;
  for (const InputPlan& input : callee.inputs) {
    Json described = {{"name", input.name}, {"shape", input.shape}, {"datatype", input.datatype}};
    if (StandsInJson(input)) {
      described["data"] = Json::array();
      for (int64_t i = 0; i < Elements(input); ++i) described["data"].push_back(Element(input, i));
    } else {
      const int64_t bytes = Elements(input) * static_cast<int64_t>(DatatypeBytes(input.datatype));
      described["parameters"] = {{"binary_data_size", bytes}};
      zeros += bytes;
    }
    request["inputs"].push_back(std::move(described));
  }
  const std::string body = Text(request);
  const std::string url = absl::StrCat(HasTls(callee.connection) ? "https://" : "http://", callee.address,
                                       "/v2/models/", UrlText(callee.model), "/infer");
  const std::string flags = absl::StrCat("curl -sS", CurlFlags(callee.connection));
  if (zeros == 0) {
    return absl::StrCat(flags, " ", url, " -H 'Content-Type: application/json' \\\n  -d ", Quoted(body), "\n");
  }
  return absl::StrCat("{ printf '%s' ", Quoted(body), "; head -c ", zeros, " /dev/zero; } | \\\n  ", flags, " ", url,
                      " -H 'Content-Type: application/octet-stream' \\\n  -H 'Inference-Header-Content-Length: ",
                      body.size(), "' --data-binary @-\n");
}

std::string PythonProgram(const Callee& callee) {
  std::string program = "import numpy\nimport tritonclient.http as http\n\n";
  absl::StrAppend(&program, "client = ", PythonClient(callee), "\ninputs = [\n");
  for (const InputPlan& input : callee.inputs) {
    absl::StrAppend(&program, "    http.InferInput(", PythonText(input.name), ", [", absl::StrJoin(input.shape, ", "),
                    "], \"", input.datatype, "\"),\n");
  }
  absl::StrAppend(&program, "]\n");
  for (size_t i = 0; i < callee.inputs.size(); ++i) {
    absl::StrAppend(&program, "inputs[", i, "].set_data_from_numpy(", PythonArray(callee.inputs[i]), ")\n");
  }
  const std::string& token = callee.connection.token_file;
  const std::string headers = token.empty() ? ""
                                            : absl::StrCat(", headers={\"authorization\": \"Bearer \" + open(",
                                                           PythonText(token), ").read().strip()}");
  absl::StrAppend(&program, "answer = client.infer(", PythonText(callee.model), ", inputs", headers, ")\n");
  for (const std::string& output : callee.outputs) {
    absl::StrAppend(&program, "print(", PythonText(output), ", answer.as_numpy(", PythonText(output), "))\n");
  }
  return program;
}

}  // namespace swizzle::client
