// Why a model failed to load, as the log, probes and clients are told. Functions only.
#ifndef SWIZZLE_SERVER_REPOSITORY_LOAD_FAILURE_H_
#define SWIZZLE_SERVER_REPOSITORY_LOAD_FAILURE_H_

#include <cstddef>
#include <filesystem>

#include "kernels/base/status.h"

namespace swizzle {

// More is no reason, but what a file holds in the place of a name or a number; and no client takes a status of many
// kilobytes.
inline constexpr size_t kMostReasonBytes = 600;

// Without paths that begin with the folder of a model's version or one of the two above it, and of at most
// kMostReasonBytes: of a longer message the middle is left out, characters of UTF-8 stay whole, and it says so.
Status ReasonForClients(const Status& status, const std::filesystem::path& version_folder);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_LOAD_FAILURE_H_
