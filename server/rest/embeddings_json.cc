#include "server/rest/embeddings_json.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "server/rest/element_json.h"

namespace swizzle {
namespace {

// `vector` is FP32, and host order is little-endian.
Status WriteVector(const TextRequest& request, std::string_view vector, int64_t most, std::string& text) {
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

// What is too long, or a NaN or the like, which is the model's fault.
Status Unwritten(const Status& why, const std::string& what) {
  const bool too_long = absl::IsResourceExhausted(why);
  return MakeError(too_long ? StatusCode::kOutOfRange : StatusCode::kInternal, what, " ", std::string(why.message()));
}

}  // namespace

StatusOr<std::string> WriteEmbeddings(TextEndpoint endpoint, const TextRequest& request, const Embeddings& embeddings,
                                      int64_t most) {
  const bool is_tei = endpoint == TextEndpoint::kTeiEmbed;
  const size_t bytes = embeddings.width * sizeof(float);
  std::string text = is_tei ? "[" : R"({"object":"list","data":[)";
  int64_t index = 0;
  for (const std::string& rows : embeddings.rows) {
    for (size_t at = 0; at < rows.size(); at += bytes, ++index) {
      if (index > 0) text += ',';
      if (!is_tei) text += Concat(R"({"object":"embedding","index":)", index, R"(,"embedding":)");
      const Status written = WriteVector(request, std::string_view(rows).substr(at, bytes), most, text);
      if (!written.ok()) return Unwritten(written, Concat("the vector of text ", index));
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

StatusOr<std::string> WriteTokenEmbeddings(std::span<const std::string> texts, size_t width, int64_t most) {
  const size_t bytes = width * sizeof(float);
  std::string text = "[";
  for (size_t i = 0; i < texts.size(); ++i) {
    text += i > 0 ? ",[" : "[";
    for (size_t at = 0; at < texts[i].size(); at += bytes) {
      text += at > 0 ? "," : "";
      const Status written = WriteVector({}, std::string_view(texts[i]).substr(at, bytes), most, text);
      if (!written.ok()) return Unwritten(written, Concat("the vector of token ", at / bytes, " of text ", i));
    }
    text += ']';
  }
  return text + ']';
}

StatusOr<std::string> WriteSimilarities(const Embeddings& embeddings, int64_t most) {
  const size_t bytes = embeddings.width * sizeof(float);
  const std::string_view source =
      std::string_view(embeddings.rows.back()).substr(embeddings.rows.back().size() - bytes);
  std::string cosines;
  for (const std::string& rows : embeddings.rows) {
    for (size_t at = 0; at < rows.size(); at += bytes) {
      double cosine = 0.0;
      for (size_t i = 0; i < bytes; i += sizeof(float)) {
        float a, b;
        std::memcpy(&a, rows.data() + at + i, sizeof(float));
        std::memcpy(&b, source.data() + i, sizeof(float));
        cosine += static_cast<double>(a) * b;
      }
      const auto rounded = static_cast<float>(cosine);
      cosines.append(reinterpret_cast<const char*>(&rounded), sizeof(float));
    }
  }
  cosines.resize(cosines.size() - sizeof(float));  // the last is its own
  std::string text = "[";
  const Status written = WriteJsonElements(cosines, DType::kFloat32, most, text);
  if (!written.ok()) return Unwritten(written, "the answer");
  return text + "]";
}

}  // namespace swizzle
