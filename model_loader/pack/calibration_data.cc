#include "model_loader/pack/calibration_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "kernels/base/dtype_row.h"
#include "model_loader/plan/planner.h"

namespace swizzle::pack {
namespace {

// Adds the rows of another array of the same type and row.
Status Append(const std::string& name, NpyArray array, NpyArrays& arrays) {
  const auto [found, is_new] = arrays.try_emplace(name);
  NpyArray& to = found->second;
  if (is_new) {
    to = std::move(array);
    return {};
  }
  const bool fits = !to.shape.empty() && to.shape.size() == array.shape.size() && to.dtype == array.dtype &&
                    std::equal(to.shape.begin() + 1, to.shape.end(), array.shape.begin() + 1);
  if (!fits) {
    return InvalidArgument("input '", name, "' is ", DTypeName(to.dtype), " ", ShapeText(to.shape),
                           " in one array and ", DTypeName(array.dtype), " ", ShapeText(array.shape), " in another");
  }
  to.shape[0] += array.shape[0];
  to.bytes.insert(to.bytes.end(), array.bytes.begin(), array.bytes.end());
  return {};
}

Status ReadFolder(const std::filesystem::path& folder, const std::function<std::string(const std::string&)>& name_of,
                  NpyArrays& arrays) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  }
  if (error) return InvalidArgument("cannot be read as a folder");
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    SWIZZLE_ASSIGN_OR_RETURN(NpyArray array, ReadNpy(file));
    SWIZZLE_RETURN_IF_ERROR(Append(name_of(file.stem().string()), std::move(array), arrays));
  }
  return {};
}

// Whether the array is rows for this input.
Status CheckRows(const NpyArray& array, const NetworkPort& port, const Shape& row) {
  if (array.dtype != port.dtype) {
    return InvalidArgument("input '", port.name, "' is ", DTypeName(array.dtype), "; save array.astype('",
                           RowOf(port.dtype).npy, "')");
  }
  const bool fits = array.shape.size() == row.size() + 1 && std::equal(row.begin(), row.end(), array.shape.begin() + 1);
  if (!fits) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(array.shape), "; it must be rows of ",
                           ShapeText(row));
  }
  const std::vector<float> floats = FloatsOf({port.dtype, {}, array.bytes});
  if (std::ranges::any_of(floats, [](float value) { return std::isnan(value); })) {
    return InvalidArgument("input '", port.name, "' has values that are no numbers (NaN)");
  }
  return {};
}

}  // namespace

std::vector<float> FloatsOf(const TensorView& view) {
  std::vector<float> floats(view.bytes.size() / ElementBytes(view.dtype));
  if (view.dtype == DType::kUint8) {
    std::ranges::transform(view.bytes, floats.begin(), [](std::byte x) { return static_cast<float>(x); });
  } else {
    SWIZZLE_CHECK(view.dtype == DType::kFloat32);
    if (!floats.empty()) std::memcpy(floats.data(), view.bytes.data(), view.bytes.size());
  }
  return floats;
}

StatusOr<NpyArrays> ReadCalibration(const std::filesystem::path& from, std::span<const interpreter::Port> inputs,
                                    bool any_name) {
  const auto name_of = [&](const std::string& name) { return inputs.size() == 1 ? inputs[0].name : name; };
  NpyArrays arrays;
  std::error_code error;
  if (std::filesystem::is_directory(from, error)) {
    SWIZZLE_RETURN_IF_ERROR(Annotate(ReadFolder(from, name_of, arrays), from.string()));
    return arrays;
  }
  SWIZZLE_ASSIGN_OR_RETURN(NpyArrays archive, ReadNpz(from));
  if (!any_name) return archive;
  for (auto& [name, array] : archive) {
    SWIZZLE_RETURN_IF_ERROR(Annotate(Append(name_of(name), std::move(array), arrays), from.string()));
  }
  return arrays;
}

StatusOr<CalibrationData> CalibrationData::Read(const std::filesystem::path& from, const Network& network) {
  CalibrationData data;
  SWIZZLE_ASSIGN_OR_RETURN(NpyArrays arrays, ReadCalibration(from, InterfaceOf(network).inputs, /*any_name=*/true));
  for (const NetworkPort& port : network.inputs) {
    const auto found = arrays.find(port.name);
    if (found == arrays.end()) return InvalidArgument(from.string(), " has no array for input '", port.name, "'");
    Shape shape = DimsAt(network, port, 1);
    const Status fits = CheckRows(found->second, port, Shape(shape.begin() + 1, shape.end()));
    if (!fits.ok()) return Annotate(fits, from.string());
    const size_t batch = static_cast<size_t>(*ElementCount(shape)) * ElementBytes(port.dtype);
    data.rows_.push_back(std::move(found->second.bytes));
    const size_t batches = data.rows_.back().size() / batch;
    data.batches_ = data.rows_.size() == 1 ? batches : std::min(data.batches_, batches);
    data.first_.push_back({port.dtype, std::move(shape), std::span(data.rows_.back()).first(batches > 0 ? batch : 0)});
  }
  if (data.batches_ == 0) return InvalidArgument(from.string(), " has not one batch for every input");
  return data;
}

std::vector<TensorView> CalibrationData::Batch(size_t index) const {
  std::vector<TensorView> inputs = first_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t bytes = inputs[i].bytes.size();
    inputs[i].bytes = std::span(rows_[i]).subspan(index * bytes, bytes);
  }
  return inputs;
}

StatusOr<std::unique_ptr<PlanRunner>> NewWatchingRunner(Network network, const std::vector<int>& values,
                                                        Backend& backend, int threads) {
  network.outputs.clear();
  for (const int value : values) {
    const NetworkValue& watched = network.values[value];
    Shape dims = {watched.channels, watched.height, watched.width};
    if (network.batch_size > 0) dims.insert(dims.begin(), network.batch_size);
    network.outputs.push_back({Concat("value ", value), DType::kFloat32, std::move(dims), value});
  }
  // Enough to find kernels that are not slow; a few runs do not pay for more.
  const PlanOptions options{
      .max_batch = std::max<int64_t>(network.batch_size, 1), .threads = threads, .tuning_budget = absl::ZeroDuration()};
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(std::move(network), backend, options));
  return PlanRunner::Make(std::move(plan), {});
}

}  // namespace swizzle::pack
