// What a call that may fail returns: a Status, or a Result<T> that holds either a value or an Error.
//
// What the world can cause (files, sockets, bytes, arguments) is an Error; a mistake of ours is a STOKER_CHECK.
// Nothing throws across Stoker's C++ API.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace stoker {

enum class ErrorCode {
  kOk,
  kBadInput,     // an argument or a user's file is not what the call takes
  kNotFound,     // the named thing is not there
  kExists,       // the named thing is there already
  kCorrupt,      // bytes that we or another tool wrote are damaged; never folded into kIo or kNotFound
  kNoSpace,      // the disk or a quota is full
  kInUse,        // another process holds it
  kIo,           // the system refused; the message has its words
  kUnsupported,  // well-formed, but not something Stoker does
  kCancelled,    // stopped on request
};

// "corrupt", "no-space", …: the words that `--json` and logs use.
const char* name(ErrorCode code);

// One failure, told to a person: what happened, and what to do next. Both are whole sentences without a final stop;
// `message` names the file and the number, `hint` may be empty.
struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;
  std::string hint = {};
};

// The error for a failed system call: `what` and the file, then errno's words. ENOSPC and EDQUOT become kNoSpace,
// ENOENT kNotFound, EEXIST kExists, the rest kIo.
Error errno_error(int error_number, const std::string& what);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error)
      : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return Error{…}` reads well

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  ErrorCode code() const { return ok() ? ErrorCode::kOk : error_->code; }
  const Error& error() const { return *error_; }  // only when !ok()

 private:
  std::optional<Error> error_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  ErrorCode code() const { return ok() ? ErrorCode::kOk : error().code; }
  const Error& error() const { return std::get<Error>(state_); }  // only when !ok()
  Status status() const { return ok() ? Status() : Status(error()); }

  T& operator*() & { return std::get<T>(state_); }
  const T& operator*() const& { return std::get<T>(state_); }
  T&& operator*() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }

 private:
  std::variant<T, Error> state_;
};

// A figure that could not be read says why. Missing is not zero.
template <typename T>
struct Signal {
  std::optional<T> value;
  std::string why;  // set when, and only when, there is no value

  Signal() : why("not read") {}
  Signal(T v) : value(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  static Signal unavailable(std::string reason) {
    Signal signal;
    signal.why = std::move(reason);
    return signal;
  }
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
};

[[noreturn]] void check_failed(const char* file, int line, const char* what, const std::string& message);

}  // namespace stoker

// Ends the process with a message when `condition` is false: a mistake in Stoker, never one of the user's.
#define STOKER_CHECK(condition, message)                                               \
  do {                                                                                 \
    if (!(condition)) ::stoker::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)

// Leaves the function with the error of `expression`, a Status or a Result, if it has one.
#define STOKER_TRY(expression)                                                       \
  do {                                                                               \
    if (auto stoker_try = (expression); !stoker_try.ok()) return stoker_try.error(); \
  } while (false)
