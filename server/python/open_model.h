// A model that Python has open: swizzle_engine._engine.Model.
//
// A run keeps the engine's model until it ends, whoever closes this one meanwhile. Thread-safe with the interpreter's
// lock, which everything that takes long gives up.
#ifndef SWIZZLE_SERVER_PYTHON_OPEN_MODEL_H_
#define SWIZZLE_SERVER_PYTHON_OPEN_MODEL_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/engine/engine.h"

namespace swizzle::python {

class OpenModel {
 public:
  // Throws why the file can't be opened.
  OpenModel(const std::filesystem::path& file, const engine::Options& options);
  ~OpenModel() { Close(); }
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;

  // Waits for runs of other threads that have begun, unless one of them is left to do that.
  void Close();
  bool closed() const { return model_ == nullptr; }

  // Throws if it is closed.
  engine::Model& model() const { return *Shared(); }

  // Outputs by name: those that are asked for, or with None all. Values are what InputArray takes; None stands for an
  // optional input that is not given.
  nanobind::dict Run(const nanobind::dict& inputs, nanobind::handle outputs, const engine::TextOptions& texts) const;

  // Seconds that so many runs take the engine alone, without Python before and after.
  double TimeRuns(const nanobind::dict& inputs, int count) const;

  nanobind::str Inspect(engine::Format format) const;

 private:
  const std::shared_ptr<engine::Model>& Shared() const;

  std::shared_ptr<engine::Model> model_;  // null once it is closed
};

// Adds the class, and TensorInfo.
void BindModel(nanobind::module_& module);

}  // namespace swizzle::python

#endif  // SWIZZLE_SERVER_PYTHON_OPEN_MODEL_H_
