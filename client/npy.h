// NumPy's .npy files (format versions 1 to 3): C order, little-endian numbers and booleans. Free functions,
// thread-safe.
//
// Everything in a file is checked against its size before anything is allocated from it.
#ifndef SWIZZLE_CLIENT_NPY_H_
#define SWIZZLE_CLIENT_NPY_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "client/tensor.h"

namespace swizzle::client {

// NOT_FOUND or INVALID_ARGUMENT, naming the file and what to change. The tensor's name is left empty.
absl::StatusOr<Tensor> ReadNpy(const std::filesystem::path& file);

// The same on bytes in memory.
absl::StatusOr<Tensor> ParseNpy(std::string bytes);

// The tensor as the bytes of an .npy file. UNIMPLEMENTED for BYTES and BF16, which NumPy has no type for.
absl::StatusOr<std::string> FormatNpy(const Tensor& tensor);

// Replaces `file`.
absl::Status WriteNpy(const std::filesystem::path& file, const Tensor& tensor);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_NPY_H_
