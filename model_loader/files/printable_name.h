// What names that come from a model file have to be.
#ifndef SWIZZLE_MODEL_LOADER_FILES_PRINTABLE_NAME_H_
#define SWIZZLE_MODEL_LOADER_FILES_PRINTABLE_NAME_H_

#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

// A name that may stand in messages, logs and protocol replies: UTF-8 without control characters, at most 1024 bytes.
// INVALID_ARGUMENT, not repeating it, if it is not; `what` says whose name it is.
Status CheckName(const std::string& name, const std::string& what);

// A name of which nothing is known, in quotes, for a message: cut after 128 bytes, and with '?' for what is not
// printable.
std::string QuotedName(std::string_view name);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_PRINTABLE_NAME_H_
