// A JSON value, its parser and its printer. Objects keep the order in which their members were set.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "stoker/base/status.h"

namespace stoker {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Json(T value)
      : value_(static_cast<std::int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  // {"value": …} or {"value": null, "why": "…"}: how every unavailable figure is written.
  template <typename T>
  Json(const Signal<T>& signal) : Json(object()) {
    set("value", signal.value ? Json(*signal.value) : Json());
    if (!signal.value) set("why", signal.why);
  }

  static Json object(std::initializer_list<Member> members = {});
  static Json array() { return Json(Array{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The value as the asked type, or `otherwise` when it is of another type.
  bool as_bool(bool otherwise = false) const;
  std::int64_t as_int(std::int64_t otherwise = 0) const;
  double as_double(double otherwise = 0) const;
  const std::string& as_string() const;  // "" when not a string
  const Array& items() const;            // empty when not an array
  const Object& members() const;         // empty when not an object

  // The named member, or null when there is none or this is no object.
  const Json& operator[](std::string_view key) const;
  bool has(std::string_view key) const;
  // Replaces or appends. A null becomes an object first.
  Json& set(std::string_view key, Json value);
  // A null becomes an array first.
  Json& push(Json value);
  // Becomes the object with these members, taken as they are: a key that is there twice is found at its first place.
  void set_members(Object members);

  // `indent` < 0: one line. NaN and infinities are written as null; bytes that are not UTF-8 are replaced.
  std::string dump(int indent = -1) const;

  // Errors: kCorrupt with the byte offset; kBadInput over `max_bytes` or deeper than 256 levels.
  static Result<Json> parse(std::string_view text, std::size_t max_bytes = std::size_t{64} << 20);

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace stoker
