#include "model_loader/text/json_parts.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;
using Kind = TemplatePart::Kind;

constexpr int64_t kMostTypes = 1 << 16;
constexpr int64_t kMostLength = int64_t{1} << 40;

// A token and its id, as ["[SEP]", 102].
StatusOr<int32_t> ReadNamedId(const Fields& fields, const char* name) {
  const Json* pair = fields.Find(name);
  const int32_t id = pair != nullptr && pair->is_array() && pair->size() == 2 ? IdOf((*pair)[1]) : -1;
  if (id < 0) return fields.Wrong(name, "a token and its id");
  return id;
}

StatusOr<std::vector<int32_t>> ReadSpecialIds(const Fields& special_tokens, const std::string& name) {
  const Fields token(special_tokens.Find(name.c_str()),
                     Concat("the special token ", Shown(name), " of its post_processor TemplateProcessing"));
  SWIZZLE_ASSIGN_OR_RETURN(const Json* list, token.Array("ids"));
  std::vector<int32_t> ids;
  for (const Json& id : *list) ids.push_back(IdOf(id));
  for (const int32_t id : ids) {
    if (id < 0) return token.Wrong("ids", "a list of ids");
  }
  return ids;
}

StatusOr<TemplatePart> ReadPart(const Json& json, const Fields& special_tokens) {
  const Fields fields(json, "a template of its post_processor");
  const char* kind = fields.Has("Sequence") ? "Sequence" : "SpecialToken";
  SWIZZLE_ASSIGN_OR_RETURN(const Json* described, fields.Object(kind));
  const Fields part(*described, Concat("a ", kind, " of its post_processor"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string id, part.Text("id"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t type, part.Whole("type_id", kMostTypes));
  const auto type_id = static_cast<int32_t>(type);
  if (fields.Has("Sequence")) {
    if (id != "A" && id != "B") return part.Wrong("id", "A or B");
    return TemplatePart{id == "A" ? Kind::kFirst : Kind::kSecond, type_id};
  }
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, ReadSpecialIds(special_tokens, id));
  return TemplatePart{Kind::kSpecial, type_id, std::move(ids)};
}

// In which every text stands once.
StatusOr<std::vector<TemplatePart>> ReadRow(const Fields& fields, const char* name, int texts) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json* list, fields.Array(name));
  const Fields special_tokens(fields.Find("special_tokens"), Concat("the special_tokens of ", fields.what()));
  std::vector<TemplatePart> parts;
  int counts[2] = {0, 0};
  for (const Json& element : *list) {
    SWIZZLE_ASSIGN_OR_RETURN(TemplatePart part, ReadPart(element, special_tokens));
    if (part.kind != Kind::kSpecial) ++counts[part.kind == Kind::kFirst ? 0 : 1];
    parts.push_back(std::move(part));
  }
  if (counts[0] != 1 || counts[1] != texts - 1) {
    return fields.Wrong(name,
                        texts == 1 ? "a list with the sequence A once" : "a list with the sequences A and B once");
  }
  return parts;
}

StatusOr<Template> ReadTemplate(const Fields& fields) {
  Template layout;
  SWIZZLE_ASSIGN_OR_RETURN(layout.single, ReadRow(fields, "single", 1));
  SWIZZLE_ASSIGN_OR_RETURN(layout.pair, ReadRow(fields, "pair", 2));
  return layout;
}

// What ByteLevel and RobertaProcessing say of offsets.
Status ReadTrimming(const Fields& fields, Template& layout) {
  SWIZZLE_ASSIGN_OR_RETURN(layout.trims_offsets, fields.Flag("trim_offsets", true));
  SWIZZLE_ASSIGN_OR_RETURN(layout.keeps_first_blank, fields.Flag("add_prefix_space", true));
  return {};
}

template <Template (*make)(int32_t, int32_t)>
StatusOr<Template> ReadPair(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const int32_t cls, ReadNamedId(fields, "cls"));
  SWIZZLE_ASSIGN_OR_RETURN(const int32_t sep, ReadNamedId(fields, "sep"));
  return make(cls, sep);
}

StatusOr<Template> ReadRoberta(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(Template layout, ReadPair<RobertaTemplate>(fields));
  SWIZZLE_RETURN_IF_ERROR(ReadTrimming(fields, layout));
  return layout;
}

// Changes offsets alone.
StatusOr<Template> ReadByteLevel(const Fields& fields) {
  Template layout;
  SWIZZLE_RETURN_IF_ERROR(ReadTrimming(fields, layout));
  return layout;
}

// All but one of its parts are ByteLevel.
StatusOr<Template> ReadParts(const Fields& fields) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json* list, fields.Array("processors"));
  const Json* adds = nullptr;
  Template bytes;
  for (const Json& element : *list) {
    const Fields part(element, "a part of its post_processor");
    SWIZZLE_ASSIGN_OR_RETURN(const std::string type, part.Text("type"));
    if (type == "ByteLevel") {
      SWIZZLE_RETURN_IF_ERROR(ReadTrimming(part, bytes));
      continue;
    }
    if (adds != nullptr || type == "Sequence") {
      return Unimplemented("its post_processor Sequence has several parts that add tokens; one may");
    }
    adds = &element;
  }
  if (adds == nullptr) return bytes;
  SWIZZLE_ASSIGN_OR_RETURN(Template layout, ReadPostProcessor(*adds));
  if (!bytes.trims_offsets) return layout;
  layout.trims_offsets = true;
  layout.keeps_first_blank = bytes.keeps_first_blank;
  return layout;
}

struct PostProcessorRow {
  std::string_view type;
  StatusOr<Template> (*read)(const Fields&);
};
constexpr PostProcessorRow kPostProcessors[] = {
    {"BertProcessing", ReadPair<BertTemplate>}, {"ByteLevel", ReadByteLevel},
    {"RobertaProcessing", ReadRoberta},         {"Sequence", ReadParts},
    {"TemplateProcessing", ReadTemplate},
};

}  // namespace

StatusOr<Template> ReadPostProcessor(const Json& json) {
  SWIZZLE_ASSIGN_OR_RETURN(const PostProcessorRow* row, FindRow(json, kPostProcessors, "post_processor"));
  return row->read(Fields(json, Concat("its post_processor ", row->type)));
}

StatusOr<Truncation> ReadTruncation(const Json& json) {
  const Fields fields(json, "its truncation");
  Truncation truncation;
  SWIZZLE_ASSIGN_OR_RETURN(truncation.max_tokens, fields.Whole("max_length", kMostLength));
  if (truncation.max_tokens == 0) return fields.Wrong("max_length", "more than 0");
  SWIZZLE_ASSIGN_OR_RETURN(const std::string direction, fields.Text("direction", "Right"));
  if (direction != "Left" && direction != "Right") return fields.Wrong("direction", "Left or Right");
  truncation.from_left = direction == "Left";
  SWIZZLE_ASSIGN_OR_RETURN(const std::string strategy, fields.Text("strategy", "LongestFirst"));
  using Strategy = Truncation::Strategy;
  if (strategy == "LongestFirst") {
    truncation.strategy = Strategy::kLongestFirst;
  } else if (strategy == "OnlyFirst" || strategy == "OnlySecond") {
    truncation.strategy = strategy == "OnlyFirst" ? Strategy::kOnlyFirst : Strategy::kOnlySecond;
  } else {
    return fields.Wrong("strategy", "LongestFirst, OnlyFirst or OnlySecond");
  }
  return truncation;
}

}  // namespace swizzle::text
