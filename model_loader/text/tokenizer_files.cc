#include "model_loader/text/tokenizer_files.h"

#include <system_error>

#include "model_loader/files/read_file.h"
#include "model_loader/text/json_fields.h"

namespace swizzle::text {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTokenizerBytes = int64_t{256} << 20;
constexpr int64_t kMostConfigBytes = int64_t{16} << 20;

struct Kind {
  std::string_view file;
  StatusOr<TokenizerParts> (*parse)(std::string_view, const TokenizerSettings&);
};
// What comes first says most.
constexpr Kind kKinds[] = {
    {"tokenizer.json", ParseTokenizerJson},
    {"vocab.txt", ParseBertVocabulary},
    {"sentencepiece.bpe.model", ParseSentencepieceModel},
    {"spiece.model", ParseSentencepieceModel},
    {"tokenizer.model", ParseSentencepieceModel},
};

// By its ending a file that is called otherwise.
const Kind* KindOf(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const Kind& kind : kKinds) {
    if (name == kind.file) return &kind;
  }
  const std::string ending = file.extension().string();
  return ending == ".json" ? &kKinds[0] : ending == ".txt" ? &kKinds[1] : ending == ".model" ? &kKinds[2] : nullptr;
}

StatusOr<fs::path> FindFile(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  std::string names;
  for (const Kind& kind : kKinds) {
    if (fs::exists(path / kind.file, ignored)) return path / kind.file;
    names += Concat(names.empty() ? "" : ", ", kind.file);
  }
  return MakeError(StatusCode::kNotFound, path.string(), " holds no tokenizer; it has to hold one of ", names);
}

StatusOr<std::string> ReadText(const fs::path& file, int64_t most) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(file, most));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

StatusOr<std::string> ReadBeside(const fs::path& file, const char* name) {
  std::error_code ignored;
  const fs::path beside = file.parent_path() / name;
  if (!fs::exists(beside, ignored)) return std::string();
  return ReadText(beside, kMostConfigBytes);
}

StatusOr<std::string> ModelType(const std::string& config) {
  if (config.empty()) return std::string();
  SWIZZLE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseObject(config));
  return Fields(json, "it").Text("model_type", "");
}

StatusOr<TokenizerSettings> ReadSettings(const fs::path& file) {
  TokenizerSettings settings;
  SWIZZLE_ASSIGN_OR_RETURN(settings.tokenizer_config, ReadBeside(file, "tokenizer_config.json"));
  SWIZZLE_ASSIGN_OR_RETURN(settings.special_tokens_map, ReadBeside(file, "special_tokens_map.json"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string config, ReadBeside(file, "config.json"));
  StatusOr<std::string> model_type = ModelType(config);
  if (!model_type.ok()) return Annotate(model_type.status(), (file.parent_path() / "config.json").string());
  settings.model_type = *std::move(model_type);
  return settings;
}

// transformers writes 1e30 where it knows of no end.
StatusOr<int64_t> ModelMaxTokens(const std::string& tokenizer_config) {
  constexpr double kNoEnd = 1e9;
  if (tokenizer_config.empty()) return 0;
  StatusOr<nlohmann::json> json = ParseObject(tokenizer_config);
  if (!json.ok()) return Annotate(json.status(), "tokenizer_config.json");
  const Fields fields(*json, "tokenizer_config.json");
  const nlohmann::json* const length = fields.Find("model_max_length");
  if (length == nullptr) return 0;
  if (!length->is_number() || length->get<double>() < 1.0)
    return fields.Wrong("model_max_length", "a number from 1 on");
  return length->get<double>() < kNoEnd ? static_cast<int64_t>(length->get<double>()) : 0;
}

// Adds what an object of this kind calls special tokens: by a string, or by an object with a content.
Status AddNames(const std::string& text, const char* file, std::map<std::string, std::string>& names) {
  if (text.empty()) return {};
  StatusOr<nlohmann::json> json = ParseObject(text);
  if (!json.ok()) return Annotate(json.status(), file);
  const Fields fields(*json, file);
  for (const char* name :
       {"pad_token", "unk_token", "cls_token", "sep_token", "bos_token", "eos_token", "mask_token"}) {
    const nlohmann::json* value = fields.Find(name);
    if (value == nullptr) continue;
    const nlohmann::json* content = value->is_object() ? Fields(*value, name).Find("content") : value;
    if (content == nullptr || !content->is_string()) return fields.Wrong(name, "a token");
    names.try_emplace(name, content->get<std::string>());
  }
  return {};
}

}  // namespace

StatusOr<std::map<std::string, std::string>> SpecialTokenNames(const TokenizerSettings& settings) {
  std::map<std::string, std::string> names;
  SWIZZLE_RETURN_IF_ERROR(AddNames(settings.tokenizer_config, "tokenizer_config.json", names));
  SWIZZLE_RETURN_IF_ERROR(AddNames(settings.special_tokens_map, "special_tokens_map.json", names));
  return names;
}

StatusOr<TokenizerParts> ReadTokenizer(const fs::path& path) {
  SWIZZLE_ASSIGN_OR_RETURN(const fs::path file, FindFile(path));
  const Kind* kind = KindOf(file);
  if (kind == nullptr) {
    return InvalidArgument(file.string(), " is no tokenizer by its name; it has to end in .json, .txt or .model");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string text, ReadText(file, kMostTokenizerBytes));
  SWIZZLE_ASSIGN_OR_RETURN(const TokenizerSettings settings, ReadSettings(file));
  StatusOr<TokenizerParts> parts = kind->parse(text, settings);
  if (!parts.ok()) return Annotate(parts.status(), file.string());
  SWIZZLE_ASSIGN_OR_RETURN(parts->model_max_tokens, ModelMaxTokens(settings.tokenizer_config));
  return parts;
}

}  // namespace swizzle::text
