#include "server/rest/order_json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "model_loader/files/printable_name.h"
#include "server/rest/element_json.h"

namespace swizzle {
namespace {

using OrderParameters = google::protobuf::Map<std::string, inference::ModelRepositoryParameter>;

constexpr std::string_view kFile = "file:";

// Hears of a text value by value, as nlohmann's parser reports them. Thread-compatible.
class OrderWalk {
 public:
  explicit OrderWalk(OrderParameters& parameters) : parameters_(parameters) {}

  const Status& status() const { return status_; }

  bool null() {
    return Scalar("null", [](auto&) { return false; });
  }
  bool boolean(bool value) {
    return Scalar("a bool", [&](auto& parameter) { return parameter.set_bool_param(value), true; });
  }
  bool number_integer(int64_t value) {
    return Scalar("a number", [&](auto& parameter) { return parameter.set_int64_param(value), true; });
  }
  bool number_unsigned(uint64_t value) {
    return Scalar("a number", [&](auto& parameter) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
      parameter.set_int64_param(static_cast<int64_t>(value));
      return true;
    });
  }
  bool number_float(double, const std::string&) {
    return Scalar("a fraction", [](auto&) { return false; });
  }
  bool string(std::string& value) {
    return Scalar("a string", [&](auto& parameter) {
      if (!key_.starts_with(kFile)) return parameter.set_string_param(std::move(value)), true;
      return absl::Base64Unescape(value, parameter.mutable_bytes_param());
    });
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON has none
  bool start_object(size_t) {
    if (stack_.empty()) return Enter(Place::kOrder);
    if (stack_.back() == Place::kOrder && key_ == "parameters") return Enter(Place::kParameters);
    return Skip();
  }
  bool start_array(size_t) {
    if (stack_.empty()) return Fail(InvalidArgument("the order must be a JSON object"));
    if (stack_.back() == Place::kOrder && key_ == "parameters") return NoObject();
    return Skip();
  }
  bool key(std::string& name) {
    if (stack_.back() != Place::kSkipped) key_ = std::move(name);
    return true;
  }
  bool end_object() { return stack_.pop_back(), true; }
  bool end_array() { return stack_.pop_back(), true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    return Fail(InvalidArgument("the order is no JSON: byte ", position));
  }

 private:
  enum class Place : uint8_t { kOrder, kParameters, kSkipped };  // the last is what nobody knows

  bool Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool NoObject() { return Fail(InvalidArgument("'parameters' of the order must be an object")); }
  bool Enter(Place place) {
    if (stack_.size() >= kMostJsonDepth) return Fail(InvalidArgument("the order nests deeper than ", kMostJsonDepth));
    stack_.push_back(place);
    return true;
  }
  bool Skip() {
    if (stack_.back() != Place::kParameters) return Enter(Place::kSkipped);
    return Fail(InvalidArgument("parameter ", QuotedName(key_), " must be a string, a number or a bool"));
  }

  // set: false if the parameter cannot have the value.
  template <typename Set>
  bool Scalar(const char* what, Set set) {
    if (stack_.empty()) return Fail(InvalidArgument("the order must be a JSON object"));
    if (stack_.back() == Place::kOrder && key_ == "parameters") return NoObject();
    if (stack_.back() != Place::kParameters) return true;
    if (parameters_.contains(key_)) return Fail(InvalidArgument("parameter ", QuotedName(key_), " is there twice"));
    if (std::ssize(parameters_) >= kMostJsonParameters) {
      return Fail(InvalidArgument("the order has more than ", kMostJsonParameters, " parameters"));
    }
    if (set(parameters_[key_])) return true;
    if (key_.starts_with(kFile)) return Fail(InvalidArgument("parameter ", QuotedName(key_), " is no base64"));
    return Fail(InvalidArgument("parameter ", QuotedName(key_), " must not be ", what));
  }

  OrderParameters& parameters_;
  Status status_;
  std::vector<Place> stack_;
  std::string key_;
};

template <typename Order>
StatusOr<Order> Read(std::string_view text, std::string_view model) {
  Order order;
  order.set_model_name(std::string(model));
  if (text.empty()) return order;
  OrderWalk walk(*order.mutable_parameters());
  const bool read = nlohmann::json::sax_parse(text.begin(), text.end(), &walk);
  SWIZZLE_RETURN_IF_ERROR(walk.status());
  if (!read) return InvalidArgument("the order is no JSON");
  return order;
}

}  // namespace

StatusOr<inference::RepositoryModelLoadRequest> ReadLoadOrder(std::string_view text, std::string_view model) {
  return Read<inference::RepositoryModelLoadRequest>(text, model);
}

StatusOr<inference::RepositoryModelUnloadRequest> ReadUnloadOrder(std::string_view text, std::string_view model) {
  return Read<inference::RepositoryModelUnloadRequest>(text, model);
}

}  // namespace swizzle
