#include "server/rest/ids_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/rest/element_json.h"

namespace swizzle {
namespace {

constexpr uint64_t kMostId = std::numeric_limits<uint32_t>::max();

// Hears of a request value by value, as nlohmann's parser reports them. Thread-compatible.
class IdsWalk {
 public:
  explicit IdsWalk(IdsRequest& request) : request_(request) {}

  const Status& status() const { return status_; }
  bool has_ids() const { return has_ids_; }

  bool null() { return !IsInIds() || NoId(); }
  bool boolean(bool value) {
    if (IsInIds()) return NoId();
    if (IsSetting()) request_.skip_special_tokens = value;
    return !stack_.empty() || NoObject();
  }
  bool number_integer(int64_t) { return Other(); }  // which is negative
  bool number_unsigned(uint64_t value) {
    if (!IsInIds() || value > kMostId || (stack_.back() == Place::kIds && nests_)) return Other();
    request_.ids.push_back(static_cast<int32_t>(std::min<uint64_t>(value, IdsRequest::kNoId)));
    return true;
  }
  bool number_float(double, const std::string&) { return Other(); }
  bool string(std::string&) { return Other(); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON has none
  bool start_object(size_t) { return stack_.empty() ? Enter(Place::kRequest) : Other() && Enter(Place::kSkipped); }
  bool start_array(size_t) {
    if (stack_.empty()) return NoObject();
    if (IsIdsKey()) return TakeIds() && Enter(Place::kIds);
    if (stack_.back() != Place::kIds) return Other() && Enter(Place::kSkipped);
    if (!nests_ && !request_.ids.empty()) return NoId();
    nests_ = true;
    return Enter(Place::kRow);
  }
  bool key(std::string& name) {
    if (stack_.size() == 1) key_ = std::move(name);
    return true;
  }
  bool end_object() { return stack_.pop_back(), true; }
  bool end_array() {
    const Place place = stack_.back();
    stack_.pop_back();
    if (place == Place::kRow || (place == Place::kIds && !nests_)) return EndText();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(InvalidArgument("the request is no JSON: byte ", position));
  }

 private:
  enum class Place : uint8_t { kRequest, kIds, kRow, kSkipped };

  bool IsInIds() const { return !stack_.empty() && (stack_.back() == Place::kIds || stack_.back() == Place::kRow); }
  bool IsKey(std::string_view name) const {
    return !stack_.empty() && stack_.back() == Place::kRequest && key_ == name;
  }
  bool IsIdsKey() const { return IsKey("ids"); }
  bool IsSetting() const { return IsKey("skip_special_tokens"); }

  bool Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool NoObject() { return Fail(InvalidArgument("the request must be a JSON object")); }
  bool NoId() {
    return Fail(InvalidArgument("'ids' must be an array of ids, or of such arrays, and its element ",
                                nests_ ? request_.ends.size() : request_.ids.size(), " is neither; ids are whole ",
                                "numbers from 0 to ", kMostId));
  }
  // A value of a type that no key which is known has.
  bool Other() {
    if (stack_.empty()) return NoObject();
    if (IsInIds() || IsIdsKey()) return NoId();
    return !IsSetting() || Fail(InvalidArgument(QuotedName(key_), " must be true or false"));
  }
  bool Enter(Place place) {
    if (stack_.size() >= kMostJsonDepth) return Fail(InvalidArgument("the request nests deeper than ", kMostJsonDepth));
    stack_.push_back(place);
    return true;
  }
  bool TakeIds() {
    if (std::exchange(has_ids_, true)) return Fail(InvalidArgument("'ids' is there twice"));
    return true;
  }
  bool EndText() {
    const size_t before = request_.ends.empty() ? 0 : request_.ends.back();
    if (request_.ids.size() == before) {
      const std::string where = nests_ ? Concat("element ", request_.ends.size(), " of 'ids'") : "'ids'";
      return Fail(InvalidArgument(where, " must not be empty"));
    }
    request_.ends.push_back(request_.ids.size());
    return true;
  }

  IdsRequest& request_;
  Status status_;
  std::vector<Place> stack_;
  std::string key_;
  bool has_ids_ = false, nests_ = false;
};

}  // namespace

StatusOr<IdsRequest> ReadIdsRequest(std::string_view json) {
  IdsRequest request;
  IdsWalk walk(request);
  const bool read = nlohmann::json::sax_parse(json.begin(), json.end(), &walk);
  SWIZZLE_RETURN_IF_ERROR(walk.status());
  if (!read) return InvalidArgument("the request is no JSON");
  if (!walk.has_ids()) return InvalidArgument("the request must have 'ids', an array of them or of arrays");
  return request;
}

}  // namespace swizzle
