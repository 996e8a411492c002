#include "server/rest/embeddings_json.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "model_loader/files/printable_name.h"
#include "server/model/string_tensor.h"
#include "server/rest/element_json.h"
#include "server/rest/rest_answer.h"

namespace swizzle {
namespace {

constexpr size_t kMostDepth = 64;
constexpr uint64_t kMostDimensions = 1 << 20;

// Hears of a text value by value, as nlohmann's parser reports them. Thread-compatible.
class EmbeddingsWalk {
 public:
  EmbeddingsWalk(EmbeddingsDialect dialect, EmbeddingsRequest& request)
      : is_tei_(dialect == EmbeddingsDialect::kTei), request_(request) {}

  const Status& status() const { return status_; }
  std::string_view texts_key() const { return is_tei_ ? "inputs" : "input"; }
  bool has_texts() const { return has_texts_; }

  bool null() { return Scalar(nullptr); }
  bool boolean(bool value) { return Scalar(value); }
  bool number_integer(int64_t value) { return Scalar(value); }
  bool number_unsigned(uint64_t value) { return Scalar(value); }
  bool number_float(double value, const std::string&) { return Scalar(value); }
  bool string(std::string& value) { return Scalar(std::string_view(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON has none
  bool start_object(size_t) {
    if (stack_.empty()) return Enter(Place::kRequest);
    if (stack_.back() == Place::kTexts || (stack_.back() == Place::kRequest && key_ == texts_key())) return NoText();
    return Enter(Place::kSkipped);
  }
  bool start_array(size_t) {
    if (stack_.empty()) return NoObject();
    if (stack_.back() == Place::kTexts) return NoText();
    if (stack_.back() != Place::kRequest || key_ != texts_key()) return Enter(Place::kSkipped);
    return TakeTexts() && Enter(Place::kTexts);
  }
  bool key(std::string& name) {
    if (stack_.back() == Place::kRequest) key_ = std::move(name);
    return true;
  }
  bool end_object() { return stack_.pop_back(), true; }
  bool end_array() { return stack_.pop_back(), true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(InvalidArgument("the request is no JSON: byte ", position));
  }

 private:
  enum class Place : uint8_t { kRequest, kTexts, kSkipped };  // the last is what nobody knows

  bool Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool NoObject() { return Fail(InvalidArgument("the request must be a JSON object")); }
  bool NoText() {
    return Fail(InvalidArgument("'", texts_key(), "' must be a string or an array of strings, and its element ",
                                request_.count, " is neither; tokens are not taken, since the server has its own"));
  }
  bool Wanted(std::string_view what) { return Fail(InvalidArgument(QuotedName(key_), " must be ", what)); }
  bool Enter(Place place) {
    if (stack_.size() >= kMostDepth) return Fail(InvalidArgument("the request nests deeper than ", kMostDepth));
    stack_.push_back(place);
    return true;
  }
  bool TakeTexts() {
    if (std::exchange(has_texts_, true)) return Fail(InvalidArgument("'", texts_key(), "' is there twice"));
    return true;
  }
  bool AddText(const JsonScalar& value) {
    const auto* const text = std::get_if<std::string_view>(&value);
    if (text == nullptr) return NoText();
    AppendElement(*text, request_.texts);
    ++request_.count;
    return true;
  }

  bool Scalar(const JsonScalar& value) {
    if (stack_.empty()) return NoObject();
    if (stack_.back() == Place::kTexts) return AddText(value);
    if (stack_.back() == Place::kSkipped) return true;
    if (key_ == texts_key()) return TakeTexts() && AddText(value);
    if (std::holds_alternative<std::nullptr_t>(value)) return true;  // as if it weren't there
    if (key_ == "dimensions") return SetDimensions(value);
    return is_tei_ ? SetOfTei(value) : SetOfOpenAi(value);
  }
  bool SetDimensions(const JsonScalar& value) {
    const auto* const number = std::get_if<uint64_t>(&value);
    if (number == nullptr || *number == 0 || *number > kMostDimensions) return Wanted("a whole number from 1 on");
    request_.dimensions = static_cast<int64_t>(*number);
    return true;
  }
  bool SetOfOpenAi(const JsonScalar& value) {
    const auto* const text = std::get_if<std::string_view>(&value);
    if (key_ == "model") {
      if (text == nullptr) return Wanted("a string");
      request_.model = *text;
    } else if (key_ == "encoding_format") {
      if (text == nullptr || (*text != "float" && *text != "base64")) return Wanted("\"float\" or \"base64\"");
      request_.base64 = *text == "base64";
    }
    return true;
  }
  bool SetOfTei(const JsonScalar& value) {
    const auto* const truth = std::get_if<bool>(&value);
    if (key_ == "normalize") {
      if (truth == nullptr) return Wanted("true or false");
      request_.unit = *truth;
      request_.raw = !*truth;
    } else if (key_ == "truncate") {
      if (truth == nullptr) return Wanted("true or false");
      if (!*truth) return Fail(InvalidArgument("'truncate' must be true or left out: long texts are cut off"));
    } else if (key_ == "truncation_direction") {
      const auto* const side = std::get_if<std::string_view>(&value);
      if (side == nullptr || (*side != "right" && *side != "Right")) return Wanted("\"right\" or left out");
    } else if (key_ == "prompt_name") {
      return Fail(InvalidArgument("'prompt_name' is not supported: put the prompt before each text"));
    }
    return true;
  }

  const bool is_tei_;
  EmbeddingsRequest& request_;
  Status status_;
  std::vector<Place> stack_;
  std::string key_;
  bool has_texts_ = false;
};

// `vector` is FP32, and host order is little-endian.
Status WriteVector(const EmbeddingsRequest& request, std::string_view vector, int64_t most, std::string& text) {
  if (request.base64) {
    text += '"' + absl::Base64Escape({vector.data(), vector.size()}) + '"';
    if (static_cast<int64_t>(text.size()) <= most) return absl::OkStatus();
    return MakeError(StatusCode::kResourceExhausted, "makes a text of more than ", most, " bytes");
  }
  text += '[';
  SWIZZLE_RETURN_IF_ERROR(WriteJsonElements(vector, DType::kFloat32, most, text));
  text += ']';
  return absl::OkStatus();
}

// TEI's ErrorType and OpenAI's "type" of a status of HTTP.
const char* TypeOf(EmbeddingsDialect dialect, int status) {
  const bool is_tei = dialect == EmbeddingsDialect::kTei;
  if (status == 429) return is_tei ? "Overloaded" : "rate_limit_error";
  if (status == 503) return is_tei ? "Unhealthy" : "server_error";
  if (status < 500) return is_tei ? "Validation" : "invalid_request_error";
  return is_tei ? "Backend" : "server_error";
}

}  // namespace

StatusOr<EmbeddingsRequest> ReadEmbeddings(EmbeddingsDialect dialect, std::string_view text) {
  EmbeddingsRequest request;
  request.unit = dialect == EmbeddingsDialect::kTei;
  EmbeddingsWalk walk(dialect, request);
  const bool read = nlohmann::json::sax_parse(text.begin(), text.end(), &walk);
  SWIZZLE_RETURN_IF_ERROR(walk.status());
  if (!read) return InvalidArgument("the request is no JSON");
  if (!walk.has_texts()) return InvalidArgument("the request must have '", walk.texts_key(), "', a text or an array");
  if (request.count == 0) return InvalidArgument("'", walk.texts_key(), "' must not be empty");
  return request;
}

StatusOr<std::string> WriteEmbeddings(EmbeddingsDialect dialect, const EmbeddingsRequest& request,
                                      const Embeddings& embeddings, int64_t most) {
  const bool is_tei = dialect == EmbeddingsDialect::kTei;
  const size_t bytes = embeddings.width * sizeof(float);
  std::string text = is_tei ? "[" : R"({"object":"list","data":[)";
  int64_t index = 0;
  for (const std::string& rows : embeddings.rows) {
    for (size_t at = 0; at < rows.size(); at += bytes, ++index) {
      if (index > 0) text += ',';
      if (!is_tei) text += Concat(R"({"object":"embedding","index":)", index, R"(,"embedding":)");
      const Status written = WriteVector(request, std::string_view(rows).substr(at, bytes), most, text);
      if (!written.ok()) {
        const bool too_long = absl::IsResourceExhausted(written);
        return MakeError(too_long ? StatusCode::kOutOfRange : written.code(), "the vector of text ", index, " ",
                         std::string(written.message()));
      }
      if (!is_tei) text += '}';
    }
  }
  text += ']';
  if (is_tei) return text;
  text += R"(,"model":)";
  SWIZZLE_RETURN_IF_ERROR(WriteJsonString(embeddings.model, text));
  text += Concat(R"(,"usage":{"prompt_tokens":)", embeddings.tokens, R"(,"total_tokens":)", embeddings.tokens, "}}");
  return text;
}

HttpAnswer EmbeddingsError(EmbeddingsDialect dialect, int status, std::string_view why) {
  using nlohmann::ordered_json;
  const char* const type = TypeOf(dialect, status);
  const ordered_json error =
      dialect == EmbeddingsDialect::kTei
          ? ordered_json{{"error", why}, {"error_type", type}}
          : ordered_json{{"error", {{"message", why}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}};
  return {.status = status, .body = {error.dump(-1, ' ', false, ordered_json::error_handler_t::replace)}};
}

HttpAnswer EmbeddingsError(EmbeddingsDialect dialect, const Status& status) {
  const int code = absl::IsResourceExhausted(status) ? 429
                   : absl::IsOutOfRange(status)      ? 413
                                                     : HttpStatusOf(status.code());
  return EmbeddingsError(dialect, code, std::string(status.message()));
}

}  // namespace swizzle
