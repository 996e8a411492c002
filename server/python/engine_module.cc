// The module swizzle_engine._engine: swizzle::engine in Python. What is convenient is in swizzle_engine/ around it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "server/engine/engine.h"
#include "server/python/input_array.h"
#include "server/python/interpreter_lock.h"
#include "server/python/model_files.h"
#include "server/python/open_model.h"
#include "server/python/output_array.h"
#include "server/python/status_error.h"

namespace swizzle::python {
namespace {

namespace nb = nanobind;

// What the engine would see of a value: (datatype, shape, address, whether its elements were copied).
nb::tuple ViewOf(const nb::str& name, const std::string& datatype, nb::handle value) {
  const engine::TensorInfo expected{.name = name.c_str(), .datatype = datatype, .shape = {}};
  InputArray array;
  array.Read(name, &expected, value);
  const engine::InputView view = array.view();
  nb::list shape;
  for (const int64_t size : view.shape) shape.append(size);
  return nb::make_tuple(nb::str(view.datatype.data(), view.datatype.size()), nb::tuple(shape),
                        reinterpret_cast<uintptr_t>(view.data.data()), array.copied());
}

void UseCudaModule(const nb::bytes& file) { engine::UseCudaModule(std::string(file.c_str(), file.size())); }

}  // namespace

NB_MODULE(_engine, module) {
  nb::set_leak_warnings(false);  // models may be open when the interpreter ends
  WatchForks();
  BindModelError(module);
  BindOutputBytes(module);
  BindModel(module);
  BindModelFiles(module);
  module.def("version", &engine::Version);
  module.def("use_cuda_module", &UseCudaModule, nb::arg("file"));
  module.def("view_of", &ViewOf, nb::arg("name"), nb::arg("datatype"), nb::arg("value"));
  module.def("end_interpreter", &EndInterpreter);
}

}  // namespace swizzle::python
