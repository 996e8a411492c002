// A device as operators and parts of a run see it: those that have a function there (model_loader/offload) are given
// arrays that lie there, and make such.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_DEVICE_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_DEVICE_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "kernels/backend/device_functions.h"
#include "model_loader/interpreter/values/array.h"

namespace swizzle::interpreter {

// Single-owner; lives as long as a run.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceStream& stream() = 0;
  virtual Memory& memory() = 0;  // on the device
  virtual Memory& host() = 0;    // for tables that are uploaded
  virtual const DeviceFunctions& functions() const = 0;
  // What factors of products may be rounded to: as regions store their activations.
  virtual DType factors() const = 0;
  // An array of the host's there. It is kept until it has been copied.
  virtual StatusOr<Array> Upload(const Array& array) = 0;
  // Holds what queued work uses, for as long as it may run; it may be recorded, and run again.
  virtual void Keep(std::shared_ptr<const void> used) = 0;
  // Where Picks::bad notes that an index is out of range, and what it notes for the node that runs.
  virtual int32_t* bad_index() = 0;
  virtual int32_t bad_index_mark() const = 0;
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_DEVICE_H_
