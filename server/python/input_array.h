// An input as Python gives it, and the engine's view of its memory.
//
// Buffers (numpy) and what has __dlpack__ (PyTorch, JAX) are looked at where they are if their elements lie on the
// host, one after the other. All else goes through swizzle_engine.arrays.to_elements, which makes elements of lists,
// strings, other strides and other orders of bytes.
#ifndef SWIZZLE_SERVER_PYTHON_INPUT_ARRAY_H_
#define SWIZZLE_SERVER_PYTHON_INPUT_ARRAY_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "server/engine/engine.h"

namespace swizzle::python {

// Owns a reference to what it looks at. Made, read and destroyed with the interpreter's lock. Single-owner.
class InputArray {
 public:
  InputArray() = default;
  ~InputArray();
  InputArray(const InputArray&) = delete;
  InputArray& operator=(const InputArray&) = delete;

  // Once. `expected` is the model's input of that name; null where it has none, which is for the engine to say. Throws
  // what is wrong with the value, by the input's name.
  void Read(nanobind::str name, const engine::TensorInfo* expected, nanobind::handle value);

  // Valid while this lives.
  engine::InputView view() const { return {name_, datatype_, shape_, data_}; }
  bool copied() const { return copied_; }

 private:
  bool ReadBuffer(nanobind::handle value, std::string_view expected);
  bool ReadDlpack(nanobind::handle value, std::string_view expected);
  void ReadConverted(const engine::TensorInfo& expected, nanobind::handle value);

  nanobind::object key_, made_, made_datatype_;
  nanobind::ndarray<nanobind::ro> dlpack_;
  Py_buffer buffer_ = {};  // of nothing where its obj is null
  std::string_view name_, datatype_;
  std::vector<int64_t> shape_;
  std::span<const std::byte> data_;
  bool copied_ = false;
};

}  // namespace swizzle::python

#endif  // SWIZZLE_SERVER_PYTHON_INPUT_ARRAY_H_
