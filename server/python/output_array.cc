#include "server/python/output_array.h"

#include <string>
#include <utility>

#include "server/python/element_types.h"

namespace swizzle::python {
namespace {

namespace nb = nanobind;

struct OutputBytes {
  std::string bytes;
};

int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  std::string& bytes = nb::inst_ptr<OutputBytes>(self)->bytes;
  return PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), /*readonly=*/0, flags);
}

nb::tuple ShapeOf(const engine::Output& output) {
  nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(output.shape.size())));
  for (size_t i = 0; i < output.shape.size(); ++i)
    PyTuple_SetItem(shape.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(output.shape[i]));
  return nb::borrow<nb::tuple>(shape);
}

}  // namespace

void BindOutputBytes(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&GetBuffer)}, {0, nullptr}};
  nb::class_<OutputBytes>(module, "OutputBytes", nb::type_slots(slots));
}

nb::object ToNumpy(engine::Output output) {
  static PyObject* const ndarray = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  const nb::tuple shape = ShapeOf(output);
  if (output.datatype == "BYTES" || output.datatype == "BF16") {
    const nb::object convert = nb::module_::import_("swizzle_engine.arrays").attr("from_elements");
    return convert(output.datatype.c_str(), shape, nb::bytes(output.data.data(), output.data.size()));
  }
  const nb::handle type = NumpyType(output.datatype);
  const nb::object bytes = nb::cast(new OutputBytes{std::move(output.data)}, nb::rv_policy::take_ownership);
  PyObject* const array = PyObject_CallFunctionObjArgs(ndarray, shape.ptr(), type.ptr(), bytes.ptr(), nullptr);
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

}  // namespace swizzle::python
