// Reads the JSON of an inference value by value, as nlohmann's parser reports them, and keeps no tree of it.
#ifndef SWIZZLE_SERVER_REST_INFER_WALK_H_
#define SWIZZLE_SERVER_REST_INFER_WALK_H_

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/dtype.h"
#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "server/rest/element_json.h"
#include "server/rest/infer_reader.h"

namespace swizzle {

// What a walk found of one input's contents.
struct JsonContents {
  std::string raw;                 // of `data`
  std::optional<uint64_t> binary;  // bytes behind the JSON
  bool has_data = false;
  bool untyped = false;  // its elements came before its type, and were passed over
};

// Hears of a text value by value, as nlohmann's parser reports them, and writes the message. Thread-compatible.
class InferWalk {
 public:
  // `types`: of the inputs' data, where an earlier walk found them; else null.
  InferWalk(inference::ModelInferRequest& message, OutputForms& forms, int64_t most,
            const std::vector<std::string>* types)
      : message_(message), forms_(forms), most_(most), types_(types) {}

  const Status& status() const { return status_; }
  std::vector<JsonContents>& contents() { return contents_; }

  // Once the text is read: what was asked for each output.
  void FinishForms();

  // ---- What the parser calls ----

  bool null() { return Scalar(nullptr); }
  bool boolean(bool value) { return Scalar(value); }
  bool number_integer(int64_t value) { return Scalar(value); }
  bool number_unsigned(uint64_t value) { return Scalar(value); }
  bool number_float(double value, const std::string&) { return Scalar(value); }
  bool string(std::string& value) { return Scalar(std::string_view(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON has none
  bool start_object(size_t);
  bool start_array(size_t);
  bool key(std::string& name);
  bool end_object() { return stack_.pop_back(), true; }
  bool end_array() { return stack_.pop_back(), true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(InvalidArgument("the request is no JSON, or has a number that is too large: byte ", position));
  }

 private:
  enum class Place : uint8_t {
    kRequest,
    kInputs,
    kInput,
    kShape,
    kData,
    kOutputs,
    kOutput,
    kParameters,
    kSkipped,  // what nobody knows
  };
  struct Level {
    Place place;
    uint32_t seen = 0;  // of kKeys
    std::string key = {};
  };
  static constexpr std::array<std::string_view, 8> kKeys = {"id",   "inputs",   "outputs", "parameters",
                                                            "name", "datatype", "shape",   "data"};

  bool Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool FailAt(const Level& level, std::string_view wanted);
  std::string WhereOf(Place place) const;
  bool Enter(Place place);
  bool EnterUnknown(const Level& level, std::string_view wanted);
  bool StartInput();
  bool StartOutput();
  bool StartData();
  bool Scalar(const JsonScalar& value);
  bool ScalarOfObject(const Level& level, const JsonScalar& value);
  bool AddDim(const JsonScalar& value);
  bool AddElement(const JsonScalar& value);
  bool AddParameter(const std::string& name, const JsonScalar& value);
  bool TakeOwnParameter(const std::string& name, const JsonScalar& value, bool& taken);
  inference::ModelInferRequest::InferInputTensor& input() { return *message_.mutable_inputs()->rbegin(); }
  inference::ModelInferRequest::InferRequestedOutputTensor& output() { return *message_.mutable_outputs()->rbegin(); }

  inference::ModelInferRequest& message_;
  OutputForms& forms_;
  const int64_t most_;
  const std::vector<std::string>* const types_;
  Status status_;
  std::vector<Level> stack_;
  std::vector<JsonContents> contents_;      // of the inputs
  std::vector<std::optional<bool>> asked_;  // "binary_data" of the outputs
  std::optional<DType> dtype_;              // of the data that is read; none: it is passed over
  int64_t bytes_ = 0;                       // of all tensors
  int parameters_ = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_INFER_WALK_H_
