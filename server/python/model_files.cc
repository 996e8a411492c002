#include "server/python/model_files.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/engine/engine.h"
#include "server/python/interpreter_lock.h"
#include "server/python/status_error.h"

namespace swizzle::python {
namespace {

namespace nb = nanobind;

std::filesystem::path PathOf(nb::handle given) {
  const auto bytes = nb::cast<nb::bytes>(given);
  return std::string(bytes.c_str(), bytes.size());
}

// An option's value.
template <typename T>
T Take(const nb::kwargs& given, const char* name, std::string_view needed) {
  const nb::object value = given[name];
  T taken{};
  if (!nb::try_cast(value, taken)) {
    const nb::str text = nb::repr(value);
    Raise(PyExc_TypeError,
          "option '" + std::string(name) + "' is " + text.c_str() + "; " + std::string(needed) + " is needed");
  }
  return taken;
}

std::string TakeText(const nb::kwargs& given, const char* name) { return Take<std::string>(given, name, "a str"); }

std::vector<std::string> TakeSkipped(const nb::kwargs& given) {
  return Take<std::vector<std::string>>(given, "skip", "a list of str");
}

// Passes lines on to Python, and keeps what is raised there.
class Listener {
 public:
  explicit Listener(nb::handle callable) : callable_(callable) {}

  // Whether to go on. Without the interpreter's lock.
  bool Hear(std::string_view line) {
    const LockedInterpreter locked;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!callable_.is_none()) callable_(Text(line));
      return true;
    } catch (nb::python_error& error) {
      raised_.emplace(std::move(error));
      return false;
    }
  }

  // Throws what was raised.
  void Check() {
    if (!raised_) return;
    raised_->restore();
    throw nb::python_error();
  }

 private:
  nb::handle callable_;
  std::optional<nb::python_error> raised_;
};

template <typename Options>
nb::str Call(absl::StatusOr<std::string> (*function)(const Options&), Options options, const nb::kwargs& given) {
  Listener listener(given["progress"]);
  options.progress = [&](std::string_view line) { return listener.Hear(line); };
  const absl::StatusOr<std::string> text = Unlocked([&] { return function(options); });
  listener.Check();
  return Text(ValueOrRaise(text));
}

template <typename Options>
Options FilesOf(const nb::bytes& model, const nb::bytes& output, const nb::kwargs& given) {
  Options options;
  options.model = PathOf(model);
  options.output = PathOf(output);
  options.calibration = PathOf(given["calibration"]);
  return options;
}

nb::str Prune(const nb::bytes& model, const nb::bytes& output, const nb::kwargs& given) {
  auto options = FilesOf<engine::PruneOptions>(model, output, given);
  options.sparsity = Take<double>(given, "sparsity", "a number");
  options.method = TakeText(given, "method");
  options.pattern = TakeText(given, "pattern");
  options.vector_rows = Take<int64_t>(given, "vector_rows", "a whole number");
  options.scores = PathOf(given["scores"]);
  options.skip = TakeSkipped(given);
  return Call(&engine::Prune, std::move(options), given);
}

nb::str Quantize(const nb::bytes& model, const nb::bytes& output, const nb::kwargs& given) {
  auto options = FilesOf<engine::QuantizeOptions>(model, output, given);
  options.observer = TakeText(given, "observer");
  options.skip = TakeSkipped(given);
  options.threads = Take<int>(given, "threads", "a whole number");
  return Call(&engine::Quantize, std::move(options), given);
}

nb::str Pack(const nb::bytes& model, const nb::bytes& output, const nb::kwargs& given) {
  auto options = FilesOf<engine::PackOptions>(model, output, given);
  options.format = TakeText(given, "format");
  options.threads = Take<int>(given, "threads", "a whole number");
  return Call(&engine::Pack, std::move(options), given);
}

}  // namespace

void BindModelFiles(nb::module_& module) {
  module.def("prune", &Prune);
  module.def("quantize", &Quantize);
  module.def("pack", &Pack);
}

}  // namespace swizzle::python
