#include "stoker/base/json.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stoker {
namespace {

constexpr std::size_t kMaxDepth = 256;

// Builds a Json from nlohmann's parse events, so that no second tree is ever held.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<number_unsigned_t>(INT64_MAX);
    return add(fits ? Json(value) : Json(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    error_ = fmt::format("not JSON at byte {}: {}", position, error.what());
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().push(std::move(value));
    } else {
      members_.back().emplace_back(std::move(keys_.back()), std::move(value));
    }
    return true;
  }
  bool open(Json value) {
    if (open_.size() >= kMaxDepth) {
      error_ = fmt::format("JSON nested deeper than {} levels", kMaxDepth);
      return false;
    }
    open_.push_back(std::move(value));
    keys_.emplace_back();
    members_.emplace_back();
    return true;
  }
  bool close() {
    Json value = std::move(open_.back());
    if (value.is_object()) {
      value = Json::object();
      value.set_members(std::move(members_.back()));
    }
    open_.pop_back();
    keys_.pop_back();
    members_.pop_back();
    return add(std::move(value));
  }

  Json root_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;
  std::vector<Json::Object> members_;
  std::string error_;
};

nlohmann::ordered_json to_nlohmann(const Json& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_int()) return value.as_int();
  if (value.is_number()) return std::isfinite(value.as_double()) ? nlohmann::ordered_json(value.as_double()) : nullptr;
  if (value.is_string()) return value.as_string();
  if (value.is_array()) {
    auto array = nlohmann::ordered_json::array();
    for (const Json& item : value.items()) array.push_back(to_nlohmann(item));
    return array;
  }
  if (value.is_object()) {
    auto object = nlohmann::ordered_json::object();
    auto& members = object.get_ref<nlohmann::ordered_json::object_t&>();
    for (const auto& [key, member] : value.members()) members.emplace_back(key, to_nlohmann(member));
    return object;
  }
  return nullptr;
}

}  // namespace

Json Json::object(std::initializer_list<Member> members) {
  Json value{Array{}};
  value.value_ = Object(members);
  return value;
}

bool Json::as_bool(bool otherwise) const {
  const auto* value = std::get_if<bool>(&value_);
  return value != nullptr ? *value : otherwise;
}

std::int64_t Json::as_int(std::int64_t otherwise) const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  const auto* real = std::get_if<double>(&value_);
  return real != nullptr && std::abs(*real) < 9.2e18 ? static_cast<std::int64_t>(*real) : otherwise;
}

double Json::as_double(double otherwise) const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  const auto* whole = std::get_if<std::int64_t>(&value_);
  return whole != nullptr ? static_cast<double>(*whole) : otherwise;
}

const std::string& Json::as_string() const {
  static const std::string empty;
  const auto* value = std::get_if<std::string>(&value_);
  return value != nullptr ? *value : empty;
}

const Json::Array& Json::items() const {
  static const Array empty;
  const auto* value = std::get_if<Array>(&value_);
  return value != nullptr ? *value : empty;
}

const Json::Object& Json::members() const {
  static const Object empty;
  const auto* value = std::get_if<Object>(&value_);
  return value != nullptr ? *value : empty;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json null;
  for (const auto& [name, value] : members()) {
    if (name == key) return value;
  }
  return null;
}

bool Json::has(std::string_view key) const {
  for (const auto& member : members()) {
    if (member.first == key) return true;
  }
  return false;
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  auto* object = std::get_if<Object>(&value_);
  STOKER_CHECK(object != nullptr, "set() on JSON that is no object");
  for (auto& [name, old] : *object) {
    if (name == key) {
      old = std::move(value);
      return *this;
    }
  }
  object->emplace_back(std::string(key), std::move(value));
  return *this;
}

void Json::set_members(Object members) { value_ = std::move(members); }

Json& Json::push(Json value) {
  if (is_null()) value_ = Array{};
  auto* array = std::get_if<Array>(&value_);
  STOKER_CHECK(array != nullptr, "push() on JSON that is no array");
  array->push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  return to_nlohmann(*this).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Json> Json::parse(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return Error{ErrorCode::kBadInput, fmt::format("JSON of {} bytes is over the limit of {}", text.size(), max_bytes)};
  }
  Builder builder;
  if (!nlohmann::json::sax_parse(text, &builder)) return Error{ErrorCode::kCorrupt, builder.error()};
  return builder.take();
}

}  // namespace stoker
