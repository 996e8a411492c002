// What the sections of a tokenizer.json say, as the `tokenizers` library writes them
// (https://huggingface.co/docs/tokenizers/components). Internal to model_loader/text. Free functions, thread-safe.
//
// Errors name the section and the part: INVALID_ARGUMENT where a field is not what it has to be, UNIMPLEMENTED for a
// type that is not read. Fields that are not known are left alone, as the library does.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_JSON_PARTS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_JSON_PARTS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/text/decoders.h"
#include "model_loader/text/json_fields.h"
#include "model_loader/text/normalizers.h"
#include "model_loader/text/pre_tokenizers.h"
#include "model_loader/text/template.h"
#include "model_loader/text/token_model.h"

namespace swizzle::text {

// Sequences may nest so deep.
constexpr int kMostDepth = 8;

StatusOr<OwnedNormalizer> ReadNormalizer(const nlohmann::json& json, int depth = 0);
StatusOr<OwnedPreTokenizer> ReadPreTokenizer(const nlohmann::json& json, int depth = 0);
StatusOr<OwnedDecoder> ReadDecoder(const nlohmann::json& json, int depth = 0);
StatusOr<Template> ReadPostProcessor(const nlohmann::json& json);
StatusOr<Truncation> ReadTruncation(const nlohmann::json& json);

// A model, and how it spells its tokens, by id.
struct ReadModel {
  OwnedTokenModel model;
  std::vector<std::string> tokens;
  size_t count = 0;  // of tokens; ids may leave gaps
};
StatusOr<ReadModel> ReadTokenModel(const nlohmann::json& json);

// The options that both a pre-tokenizer and a decoder have.
StatusOr<MetaspaceOptions> ReadMetaspaceOptions(const Fields& fields);
// One character.
StatusOr<std::string> ReadCharacter(const Fields& fields, const char* name, const std::string& absent);

// The pattern of Split and Replace: {"String": "..."} or {"Regex": "..."}.
StatusOr<Pattern> ReadPattern(const Fields& fields);

// The row of a table that `json`'s type names; `section` is what the types are of.
template <typename Row, size_t count>
StatusOr<const Row*> FindRow(const nlohmann::json& json, const Row (&rows)[count], const char* section) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string type, Fields(json, Concat("its ", section)).Text("type"));
  std::string known;
  for (const Row& row : rows) {
    if (row.type == type) return &row;
    known += Concat(known.empty() ? "" : ", ", row.type);
  }
  return Unimplemented("its ", section, " has the type ", Shown(type), "; supported are ", known);
}

// A type that a section may have, and what reads its fields, which may hold parts `depth` + 1 deep.
template <typename Owned>
struct PartRow {
  std::string_view type;
  StatusOr<Owned> (*read)(const Fields&, int depth);
};

// Reads a type that has no fields.
template <typename Owned, Owned (*make)()>
StatusOr<Owned> ReadPlain(const Fields&, int) {
  return make();
}

// What is read of every element of a sequence.
template <typename Part, typename Read>
StatusOr<std::vector<Part>> ReadSequence(const Fields& fields, const char* name, int depth, Read&& read) {
  if (depth >= kMostDepth) return InvalidArgument(fields.what(), " nests more than ", kMostDepth, " deep");
  SWIZZLE_ASSIGN_OR_RETURN(const nlohmann::json* list, fields.Array(name));
  std::vector<Part> parts;
  for (const nlohmann::json& element : *list) {
    SWIZZLE_ASSIGN_OR_RETURN(Part part, read(element, depth + 1));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_JSON_PARTS_H_
