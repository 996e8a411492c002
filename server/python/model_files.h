// swizzle_engine._engine.prune, quantize and pack: the engine's functions that write model files.
#ifndef SWIZZLE_SERVER_PYTHON_MODEL_FILES_H_
#define SWIZZLE_SERVER_PYTHON_MODEL_FILES_H_

#include <nanobind/nanobind.h>

namespace swizzle::python {

// They run without the interpreter's lock. Progress goes to a callable, if one is given, each line as a str; what it
// raises, or a signal's handler does meanwhile, ends the work, and leaves the output as it was.
void BindModelFiles(nanobind::module_& module);

}  // namespace swizzle::python

#endif  // SWIZZLE_SERVER_PYTHON_MODEL_FILES_H_
