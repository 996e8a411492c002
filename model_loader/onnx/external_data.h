// ONNX's external data: tensors whose elements lie in files beside the model. Internal to model_loader/onnx.
//
// A model names these files, so that they are reached as contained_file.h says. Data is read into memory of its own,
// never mapped: a file that shrinks meanwhile is an error, not a crash. Thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_EXTERNAL_DATA_H_
#define SWIZZLE_MODEL_LOADER_ONNX_EXTERNAL_DATA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/files/contained_file.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

class ExternalData {
 public:
  // What gives the elements of a location in place of a file.
  using Elements = std::function<StatusOr<std::vector<std::byte>>(const std::string& location, int64_t bytes)>;

  // Of a model in `folder`. Where that has no path every read is UNIMPLEMENTED, unless there are `elements`. At most
  // `max_bytes` are read in all.
  ExternalData(ModelFolder folder, int64_t max_bytes, Elements elements = nullptr)
      : folder_(std::move(folder)), elements_(std::move(elements)), bytes_left_(max_bytes) {}

  // The elements of `proto`, which take `bytes`. Its keys are location, offset (absent: 0), length (absent: `bytes`)
  // and checksum, which is ignored. Errors begin with `what`: INVALID_ARGUMENT if a key is malformed, the location not
  // as above, the length not `bytes`, or the file too short; NOT_FOUND and the like if the file can't be read.
  // REQUIRES: `proto`'s data location is EXTERNAL.
  StatusOr<std::vector<std::byte>> Read(const onnx::TensorProto& proto, int64_t bytes, const std::string& what);

 private:
  const ModelFolder folder_;
  const Elements elements_;
  int64_t bytes_left_;
  // The file that was read last: most models have one for all tensors.
  std::optional<ContainedFile> file_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_EXTERNAL_DATA_H_
