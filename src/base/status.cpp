#include "stoker/base/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace stoker {

const char* name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "ok";
    case ErrorCode::kBadInput:
      return "bad-input";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kExists:
      return "exists";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kNoSpace:
      return "no-space";
    case ErrorCode::kInUse:
      return "in-use";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Error errno_error(int error_number, const std::string& what) {
  ErrorCode code = ErrorCode::kIo;
  if (error_number == ENOSPC || error_number == EDQUOT) code = ErrorCode::kNoSpace;
  if (error_number == ENOENT) code = ErrorCode::kNotFound;
  if (error_number == EEXIST) code = ErrorCode::kExists;
  return {code, what + ": " + std::generic_category().message(error_number)};
}

void check_failed(const char* file, int line, const char* what, const std::string& message) {
  std::fprintf(stderr, "stoker: a check of its own failed (%s:%d: %s): %s\n", file, line, what, message.c_str());
  std::abort();
}

}  // namespace stoker
