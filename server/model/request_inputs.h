// The inputs of a request, checked against a model's specification as they are named, whoever brings them.
//
// Everything that is wrong with a name, a type, a shape or a size ends here, in INVALID_ARGUMENT with a message that
// names the model and the tensor, what was expected and what came.
#ifndef SWIZZLE_SERVER_MODEL_REQUEST_INPUTS_H_
#define SWIZZLE_SERVER_MODEL_REQUEST_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "server/model/model.h"
#include "server/model/request.h"

namespace swizzle {

// How messages call an input: "input 'x' of model 'm'".
std::string InputOf(const ModelSpec& spec, std::string_view input);

// INVALID_ARGUMENT unless so many bytes are the elements of `view`, whose own bytes are not looked at.
Status CheckSize(const ModelSpec& spec, std::string_view input, const TensorView& view, size_t bytes);
// The same of its own bytes, and of the elements in them, where they are BYTES.
Status CheckBytes(const ModelSpec& spec, std::string_view input, const TensorView& view);

StatusOr<size_t> IndexOfOutput(const ModelSpec& spec, std::string_view name);

// Single-owner. Takes no memory for a request that it, or what it fills, has not taken for one before.
class RequestInputs {
 public:
  // `spec` outlives this. Requests have at most so many rows.
  RequestInputs(const ModelSpec& spec, int64_t most_rows) : spec_(spec), most_rows_(most_rows) {}

  // From here on inputs are those of `request`, which outlives the calls below.
  void Begin(Request& request);
  // One more input, of this type and shape; returns which it is in the request. Its view there has the shape; bytes
  // that fit it are the caller's to put there.
  StatusOr<size_t> Add(std::string_view name, std::string_view datatype, std::span<const int64_t> shape);
  // All were added. Those that are missing get their defaults, and shapes become the model's.
  Status End();

 private:
  StatusOr<size_t> IndexOf(std::string_view name) const;
  Status CheckShape(const TensorSpec& input, const TensorView& view);
  Status CheckRows(const TensorSpec& input, int64_t rows);

  const ModelSpec& spec_;
  const int64_t most_rows_;
  Request* request_ = nullptr;
  std::vector<bool> seen_;  // by input
  bool rows_known_ = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_REQUEST_INPUTS_H_
