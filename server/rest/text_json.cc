#include "server/rest/text_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/model/string_tensor.h"
#include "server/rest/element_json.h"
#include "server/rest/rest_answer.h"

namespace swizzle {
namespace {

constexpr uint64_t kMostDimensions = 1 << 20;

// Hears of a request value by value, as nlohmann's parser reports them. Thread-compatible.
class TextWalk {
 public:
  TextWalk(TextEndpoint endpoint, TextRequest& request)
      : endpoint_(endpoint),
        texts_key_(endpoint == TextEndpoint::kOpenAiEmbeddings ? "input"
                   : endpoint == TextEndpoint::kTeiSimilarity  ? "sentences"
                   : endpoint == TextEndpoint::kTeiRerank      ? "texts"
                                                               : "inputs"),
        request_(request) {}

  const Status& status() const { return status_; }
  std::string_view texts_key() const { return texts_key_; }
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
    if (IsAmongTexts() || IsTextsKey()) return NoText();
    const bool nests = compares() && stack_.back() == Place::kRequest;
    if (nests && key_ == "inputs") return Enter(Place::kInputs);
    if (nests && key_ == "parameters") return Enter(Place::kParameters);
    return EnterSkipped();
  }
  bool start_array(size_t) {
    if (stack_.empty()) return NoObject();
    if (IsTextsKey()) return TakeTexts() && Enter(Place::kTexts);
    if (!IsAmongTexts()) return EnterSkipped();
    const bool is_row = predicts() && stack_.back() == Place::kTexts && texts_of_row_ == 0;
    return is_row ? Enter(Place::kRow) : NoText();
  }
  bool key(std::string& name) {
    if (HasSettings()) key_ = std::move(name);
    return true;
  }
  bool end_object() { return stack_.pop_back(), true; }
  bool end_array() {
    const Place place = stack_.back();
    stack_.pop_back();
    if (place == Place::kRow) return texts_of_row_ > 0 ? EndRow() : NoText();
    if (place != Place::kTexts || texts_of_row_ == 0) return true;
    request_.single = true;  // texts right in the array are one row
    return EndRow();
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(InvalidArgument("the request is no JSON: byte ", position));
  }

 private:
  // Inputs and parameters are objects of /similarity alone; the last is what nobody knows.
  enum class Place : uint8_t { kRequest, kInputs, kParameters, kTexts, kRow, kSkipped };

  bool predicts() const { return endpoint_ == TextEndpoint::kTeiPredict; }
  bool compares() const { return endpoint_ == TextEndpoint::kTeiSimilarity; }
  bool IsAmongTexts() const { return stack_.back() == Place::kTexts || stack_.back() == Place::kRow; }
  bool HasSettings() const { return !IsAmongTexts() && stack_.back() != Place::kSkipped; }
  bool IsTextsKey() const {
    return stack_.back() == (compares() ? Place::kInputs : Place::kRequest) && key_ == texts_key_;
  }

  bool Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool NoObject() { return Fail(InvalidArgument("the request must be a JSON object")); }
  bool NoText() {
    if (predicts()) {
      return Fail(InvalidArgument("'", texts_key_, "' must be a string, an array of one string or a pair of them, ",
                                  "or an array of such arrays, and its element ", request_.count, " is none of these"));
    }
    return Fail(InvalidArgument("'", texts_key_, "' must be a string or an array of strings, and its element ",
                                request_.count, " is neither; tokens are not taken, since the server has its own"));
  }
  bool Wanted(std::string_view what) { return Fail(InvalidArgument(QuotedName(key_), " must be ", what)); }
  bool Enter(Place place) {
    if (stack_.size() >= kMostJsonDepth) return Fail(InvalidArgument("the request nests deeper than ", kMostJsonDepth));
    stack_.push_back(place);
    return true;
  }
  // An object or an array, which no key that the endpoint knows may have: these want something else than a number with
  // a fraction, too.
  bool EnterSkipped() { return (!HasSettings() || Set(JsonScalar(0.5))) && Enter(Place::kSkipped); }
  bool TakeTexts() {
    if (std::exchange(has_texts_, true)) return Fail(InvalidArgument("'", texts_key_, "' is there twice"));
    return true;
  }
  bool AddText(const JsonScalar& value) {
    const auto* const text = std::get_if<std::string_view>(&value);
    const bool mixed = predicts() && stack_.back() == Place::kTexts && request_.count > 0;
    if (text == nullptr || mixed || (predicts() && texts_of_row_ == 2)) return NoText();
    AppendElement(*text, request_.texts);
    ++texts_of_row_;
    return predicts() || EndRow();
  }
  bool EndRow() {
    if (predicts()) request_.pairs.push_back(texts_of_row_ == 2);
    texts_of_row_ = 0;
    ++request_.count;
    return true;
  }

  bool Scalar(const JsonScalar& value) {
    if (stack_.empty()) return NoObject();
    if (IsAmongTexts()) return AddText(value);
    if (stack_.back() == Place::kSkipped) return true;
    if (IsTextsKey()) {
      request_.single = predicts();
      return TakeTexts() && AddText(value) && (!predicts() || EndRow());
    }
    return std::holds_alternative<std::nullptr_t>(value) || Set(value);  // null: as if it weren't there
  }
  bool Set(const JsonScalar& value) {
    if (compares()) return SetOfSimilarity(value);
    if (TaskOf(endpoint_) == text::TextTask::kClassification) return SetOfScores(value);
    if (endpoint_ == TextEndpoint::kTeiTokenize) return SetOfTokens(value);
    if (endpoint_ == TextEndpoint::kTeiEmbedAll) return SetPrompt(value) && SetOfTei(value);
    if (key_ == "dimensions") return SetDimensions(value);
    return endpoint_ == TextEndpoint::kOpenAiEmbeddings ? SetOfOpenAi(value) : SetOfEmbed(value);
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
  bool SetTruth(const JsonScalar& value, bool& setting) {
    const auto* const truth = std::get_if<bool>(&value);
    if (truth == nullptr) return Wanted("true or false");
    setting = *truth;
    return true;
  }
  // What all of TEI's requests may have.
  bool SetOfTei(const JsonScalar& value) {
    if (key_ == "truncate") return SetTruth(value, request_.truncate);
    if (key_ == "truncation_direction") {
      const auto* const side = std::get_if<std::string_view>(&value);
      if (side == nullptr || (*side != "right" && *side != "Right")) return Wanted("\"right\" or left out");
    }
    return true;
  }
  bool SetText(const JsonScalar& value, std::optional<std::string>& setting) {
    const auto* const text = std::get_if<std::string_view>(&value);
    if (text == nullptr) return Wanted("a string");
    setting = *text;
    return true;
  }
  bool SetPrompt(const JsonScalar& value) { return key_ != "prompt_name" || SetText(value, request_.prompt); }
  bool SetOfTokens(const JsonScalar& value) {
    return key_ == "add_special_tokens" ? SetTruth(value, request_.special_tokens) : SetPrompt(value);
  }
  bool SetOfEmbed(const JsonScalar& value) {
    if (key_ != "normalize") return SetPrompt(value) && SetOfTei(value);
    if (!SetTruth(value, request_.unit)) return false;
    request_.raw = !request_.unit;
    return true;
  }
  bool SetOfScores(const JsonScalar& value) {
    if (key_ == "raw_scores") return SetTruth(value, request_.raw_scores);
    if (predicts()) return SetOfTei(value);
    if (key_ == "return_text") return SetTruth(value, request_.return_text);
    return key_ == "query" ? SetText(value, request_.query) : SetOfTei(value);
  }
  bool SetOfSimilarity(const JsonScalar& value) {
    switch (stack_.back()) {
      case Place::kInputs:
        return key_ != "source_sentence" || SetText(value, request_.query);
      case Place::kParameters:
        return SetPrompt(value) && SetOfTei(value);
      default:
        return (key_ != "inputs" && key_ != "parameters") || Wanted("an object");
    }
  }

  const TextEndpoint endpoint_;
  const std::string_view texts_key_;
  TextRequest& request_;
  Status status_;
  std::vector<Place> stack_;
  std::string key_;
  bool has_texts_ = false;
  int texts_of_row_ = 0;  // so far
};

// TEI's ErrorType and OpenAI's "type" of a status of HTTP.
const char* TypeOf(TextEndpoint endpoint, int status) {
  const bool is_tei = endpoint != TextEndpoint::kOpenAiEmbeddings;
  if (status == 429) return is_tei ? "Overloaded" : "rate_limit_error";
  if (status == 503) return is_tei ? "Unhealthy" : "server_error";
  if (status < 500 && status != 424) return is_tei ? "Validation" : "invalid_request_error";
  return is_tei ? "Backend" : "server_error";
}

}  // namespace

std::string_view PathOf(TextEndpoint endpoint) {
  switch (endpoint) {
    case TextEndpoint::kOpenAiEmbeddings:
      return "/v1/embeddings";
    case TextEndpoint::kTeiEmbed:
      return "/embed";
    case TextEndpoint::kTeiEmbedAll:
      return "/embed_all";
    case TextEndpoint::kTeiSimilarity:
      return "/similarity";
    case TextEndpoint::kTeiRerank:
      return "/rerank";
    case TextEndpoint::kTeiPredict:
      return "/predict";
    case TextEndpoint::kTeiTokenize:
      return "/tokenize";
    case TextEndpoint::kTeiDecode:
      return "/decode";
  }
  SWIZZLE_CHECK(false);
}

std::optional<text::TextTask> TaskOf(TextEndpoint endpoint) {
  switch (endpoint) {
    case TextEndpoint::kOpenAiEmbeddings:
    case TextEndpoint::kTeiEmbed:
    case TextEndpoint::kTeiSimilarity:
      return text::TextTask::kEmbedding;
    case TextEndpoint::kTeiEmbedAll:
      return text::TextTask::kTokenEmbedding;
    case TextEndpoint::kTeiRerank:
    case TextEndpoint::kTeiPredict:
      return text::TextTask::kClassification;
    case TextEndpoint::kTeiTokenize:
    case TextEndpoint::kTeiDecode:
      return std::nullopt;
  }
  SWIZZLE_CHECK(false);
}

StatusOr<TextRequest> ReadTextRequest(TextEndpoint endpoint, std::string_view json) {
  TextRequest request;
  request.unit = endpoint == TextEndpoint::kTeiEmbed || endpoint == TextEndpoint::kTeiSimilarity;
  request.truncate = endpoint == TextEndpoint::kOpenAiEmbeddings;
  TextWalk walk(endpoint, request);
  const bool read = nlohmann::json::sax_parse(json.begin(), json.end(), &walk);
  SWIZZLE_RETURN_IF_ERROR(walk.status());
  if (!read) return InvalidArgument("the request is no JSON");
  if (!walk.has_texts()) {
    const char* const where = endpoint == TextEndpoint::kTeiSimilarity ? "its 'inputs'" : "the request";
    return InvalidArgument(where, " must have '", walk.texts_key(), "', a text or an array");
  }
  if (request.count == 0) return InvalidArgument("'", walk.texts_key(), "' must not be empty");
  if (endpoint == TextEndpoint::kTeiRerank && !request.query) {
    return InvalidArgument("the request must have 'query', which the texts are ranked by");
  }
  if (endpoint != TextEndpoint::kTeiSimilarity) return request;
  if (!request.query) {
    return InvalidArgument("its 'inputs' must have 'source_sentence', which the others are compared with");
  }
  AppendElement(*request.query, request.texts);
  request.query.reset();
  ++request.count;
  return request;
}

HttpAnswer TextError(TextEndpoint endpoint, int status, std::string_view why) {
  using nlohmann::ordered_json;
  const char* const type = TypeOf(endpoint, status);
  const ordered_json error =
      endpoint == TextEndpoint::kOpenAiEmbeddings
          ? ordered_json{{"error", {{"message", why}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}}
          : ordered_json{{"error", why}, {"error_type", type}};
  return {.status = status, .body = {error.dump(-1, ' ', false, ordered_json::error_handler_t::replace)}};
}

HttpAnswer TextError(TextEndpoint endpoint, const Status& status) {
  constexpr int kFailedDependency = 424;  // TEI's for a model that failed
  const bool is_tei = endpoint != TextEndpoint::kOpenAiEmbeddings;
  const int code = is_tei && absl::IsInternal(status)  ? kFailedDependency
                   : absl::IsResourceExhausted(status) ? 429
                   : absl::IsOutOfRange(status)        ? 413
                                                       : HttpStatusOf(status.code());
  return TextError(endpoint, code, std::string(status.message()));
}

}  // namespace swizzle
