#include "server/python/open_model.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/python/element_types.h"
#include "server/python/input_array.h"
#include "server/python/interpreter_lock.h"
#include "server/python/output_array.h"
#include "server/python/status_error.h"

namespace swizzle::python {
namespace {

namespace nb = nanobind;

using Item = std::pair<nb::str, nb::object>;

// References to all of them, since reading one may run code that changes the dict.
std::vector<Item> ItemsOf(const nb::dict& inputs) {
  std::vector<Item> items;
  items.reserve(inputs.size());
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(inputs.ptr(), &position, &key, &value) != 0;) {
    if (PyUnicode_Check(key) == 0) Raise(PyExc_TypeError, "inputs go by name: a key of the dict is not a str");
    items.emplace_back(nb::borrow<nb::str>(key), nb::borrow(value));
  }
  return items;
}

const engine::TensorInfo* Find(const std::vector<engine::TensorInfo>& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &engine::TensorInfo::name);
  return found == tensors.end() ? nullptr : &*found;
}

// The arrays of a call, and the engine's views of them.
class GivenInputs {
 public:
  GivenInputs(const engine::Model& model, const nb::dict& inputs)
      : items_(ItemsOf(inputs)), arrays_(std::make_unique<InputArray[]>(items_.size())) {
    views_.reserve(items_.size());
    for (const auto& [name, value] : items_) {
      const engine::TensorInfo* const info = Find(model.inputs(), name.c_str());
      if (value.is_none() && info != nullptr && info->optional) continue;
      InputArray& array = arrays_[views_.size()];
      array.Read(name, info, value);
      views_.push_back(array.view());
    }
  }
  std::span<const engine::InputView> views() const { return views_; }

 private:
  std::vector<Item> items_;
  std::unique_ptr<InputArray[]> arrays_;
  std::vector<engine::InputView> views_;
};

std::vector<std::string> NamesOf(nb::handle outputs) {
  std::vector<std::string> names;
  if (!outputs.is_none()) names = nb::cast<std::vector<std::string>>(outputs);
  return names;
}

nb::tuple ShapeOf(const engine::TensorInfo& info) {
  nb::list sizes;
  for (const int64_t size : info.shape) sizes.append(size < 0 ? nb::none() : nb::object(nb::int_(size)));
  return nb::tuple(sizes);
}

engine::Options OptionsOf(const nb::kwargs& given) {
  engine::Options options;
  options.device = nb::cast<std::string>(given["device"]);
  options.threads = nb::cast<int>(given["threads"]);
  options.precision = nb::cast<std::string>(given["precision"]);
  options.max_batch = nb::cast<int64_t>(given["max_batch"]);
  options.concurrency = nb::cast<int>(given["concurrency"]);
  options.text = nb::cast<std::string>(given["text"]);
  options.tuning_budget = absl::Seconds(nb::cast<double>(given["tuning_budget"]));
  options.tune_now = nb::cast<bool>(given["tune_now"]);
  const auto cache = nb::cast<nb::bytes>(given["tuning_cache"]);
  options.tuning_cache = std::string(cache.c_str(), cache.size());
  return options;
}

}  // namespace

OpenModel::OpenModel(const std::filesystem::path& file, const engine::Options& options)
    : model_(ValueOrRaise(Unlocked([&] { return engine::Model::Open(file, options); }))) {}

void OpenModel::Close() {
  if (std::shared_ptr<engine::Model> model = std::move(model_)) Unlocked([&] { model.reset(); });
}

const std::shared_ptr<engine::Model>& OpenModel::Shared() const {
  if (model_ == nullptr) Raise(PyExc_ValueError, "the model is closed");
  return model_;
}

nb::dict OpenModel::Run(const nb::dict& inputs, nb::handle outputs, const engine::TextOptions& texts) const {
  std::shared_ptr<engine::Model> model = Shared();
  const GivenInputs given(*model, inputs);
  const std::vector<std::string> names = NamesOf(outputs);
  auto computed = Unlocked([&] {
    auto result = model->Run(given.views(), names, texts);
    model.reset();  // which may be the last of it
    return result;
  });
  if (!computed.ok()) Raise(computed.status());
  nb::dict results;
  for (engine::Output& output : *computed) {
    const nb::str name(output.name.c_str(), output.name.size());
    results[name] = ToNumpy(std::move(output));
  }
  return results;
}

double OpenModel::TimeRuns(const nb::dict& inputs, int count) const {
  const std::shared_ptr<engine::Model> model = Shared();
  const GivenInputs given(*model, inputs);
  absl::Status status;
  const double seconds = Unlocked([&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count && status.ok(); ++i) status = model->Run(given.views()).status();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  });
  if (!status.ok()) Raise(status);
  return seconds;
}

nb::str OpenModel::Inspect(engine::Format format) const {
  const std::shared_ptr<engine::Model> model = Shared();
  return Text(ValueOrRaise(Unlocked([&] { return model->Inspect(format); })));
}

void BindModel(nb::module_& module) {
  nb::class_<engine::TensorInfo>(module, "TensorInfo")
      .def_ro("name", &engine::TensorInfo::name)
      .def_ro("datatype", &engine::TensorInfo::datatype)
      .def_ro("optional", &engine::TensorInfo::optional)
      .def_prop_ro("shape", &ShapeOf)
      .def_prop_ro("dtype", [](const engine::TensorInfo& info) { return nb::borrow(NumpyType(info.datatype)); });
  nb::class_<OpenModel>(module, "Model", nb::is_weak_referenceable())
      .def("__init__",
           [](OpenModel* self, const nb::bytes& file, const nb::kwargs& options) {
             new (self) OpenModel(std::string(file.c_str(), file.size()), OptionsOf(options));
           })
      .def("close", &OpenModel::Close)
      .def_prop_ro("closed", &OpenModel::closed)
      .def_prop_ro("name", [](const OpenModel& open) { return Text(open.model().name()); })
      .def_prop_ro("inputs", [](const OpenModel& open) { return open.model().inputs(); })
      .def_prop_ro("outputs", [](const OpenModel& open) { return open.model().outputs(); })
      .def_prop_ro("max_batch", [](const OpenModel& open) { return open.model().max_batch(); })
      .def_prop_ro("tuned", [](const OpenModel& open) { return open.model().tuned(); })
      .def_prop_ro("properties", [](const OpenModel& open) { return open.model().properties(); })
      .def(
          "run",
          [](const OpenModel& open, const nb::dict& inputs, nb::handle outputs, bool truncate,
             std::optional<std::string> prompt) {
            return open.Run(inputs, outputs, {.truncate = truncate, .prompt = std::move(prompt)});
          },
          nb::arg("inputs"), nb::arg("outputs").none() = nb::none(), nb::arg("truncate") = true,
          nb::arg("prompt").none() = nb::none())
      .def("time_runs", &OpenModel::TimeRuns, nb::arg("inputs"), nb::arg("count"))
      .def("inspect_text", [](const OpenModel& open) { return open.Inspect(engine::Format::kText); })
      .def("inspect_json", [](const OpenModel& open) { return open.Inspect(engine::Format::kJson); })
      .def("inspect_html", [](const OpenModel& open) { return open.Inspect(engine::Format::kHtml); });
}

}  // namespace swizzle::python
