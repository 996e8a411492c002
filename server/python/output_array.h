// An output of the engine as an array of numpy's.
//
// The array's elements are the output's own bytes, which it owns from then on. Of BF16, which numpy lacks, and of
// strings swizzle_engine.arrays makes arrays of float32 and of str.
#ifndef SWIZZLE_SERVER_PYTHON_OUTPUT_ARRAY_H_
#define SWIZZLE_SERVER_PYTHON_OUTPUT_ARRAY_H_

#include <nanobind/nanobind.h>

#include "server/engine/engine.h"

namespace swizzle::python {

// Adds the type of what arrays have their elements in. Once, when the module is imported.
void BindOutputBytes(nanobind::module_& module);

// With the interpreter's lock.
nanobind::object ToNumpy(engine::Output output);

}  // namespace swizzle::python

#endif  // SWIZZLE_SERVER_PYTHON_OUTPUT_ARRAY_H_
