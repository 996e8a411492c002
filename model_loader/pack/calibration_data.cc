#include "model_loader/pack/calibration_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "kernels/base/dtype_row.h"
#include "model_loader/files/npz.h"
#include "model_loader/plan/planner.h"

namespace swizzle::pack {
namespace {

// Arrays by input.
StatusOr<std::map<std::string, std::vector<NpyArray>>> ReadArrays(const std::filesystem::path& from,
                                                                  const std::vector<NetworkPort>& inputs) {
  std::map<std::string, std::vector<NpyArray>> arrays;
  const auto name_of = [&](const std::string& name) { return inputs.size() == 1 ? inputs[0].name : name; };
  std::error_code error;
  if (!std::filesystem::is_directory(from, error)) {
    SWIZZLE_ASSIGN_OR_RETURN(NpyArrays archive, ReadNpz(from));
    for (auto& [name, array] : archive) arrays[name_of(name)].push_back(std::move(array));
    return arrays;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(from, error)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  }
  if (error) return InvalidArgument(from.string(), ": cannot be read as a folder");
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    SWIZZLE_ASSIGN_OR_RETURN(NpyArray array, ReadNpy(file));
    arrays[name_of(file.stem().string())].push_back(std::move(array));
  }
  return arrays;
}

// The elements of one input's rows, one after another.
StatusOr<std::vector<std::byte>> RowsOf(const std::vector<NpyArray>& arrays, const NetworkPort& port,
                                        const Shape& row) {
  std::vector<std::byte> rows;
  for (const NpyArray& array : arrays) {
    if (array.dtype != port.dtype) {
      return InvalidArgument("input '", port.name, "' is ", DTypeName(array.dtype), "; save array.astype('",
                             RowOf(port.dtype).npy, "')");
    }
    const bool fits =
        array.shape.size() == row.size() + 1 && std::equal(row.begin(), row.end(), array.shape.begin() + 1);
    if (!fits) {
      return InvalidArgument("input '", port.name, "' is ", ShapeText(array.shape), "; it must be rows of ",
                             ShapeText(row));
    }
    rows.insert(rows.end(), array.bytes.begin(), array.bytes.end());
  }
  const std::vector<float> floats = FloatsOf({port.dtype, {}, rows});
  if (std::ranges::any_of(floats, [](float value) { return std::isnan(value); })) {
    return InvalidArgument("input '", port.name, "' has values that are no numbers (NaN)");
  }
  return rows;
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

StatusOr<CalibrationData> CalibrationData::Read(const std::filesystem::path& from, const Network& network) {
  CalibrationData data;
  SWIZZLE_ASSIGN_OR_RETURN(const auto arrays, ReadArrays(from, network.inputs));
  for (const NetworkPort& port : network.inputs) {
    const auto found = arrays.find(port.name);
    if (found == arrays.end()) return InvalidArgument(from.string(), " has no array for input '", port.name, "'");
    Shape shape = DimsAt(network, port, 1);
    auto rows = RowsOf(found->second, port, Shape(shape.begin() + 1, shape.end()));
    if (!rows.ok()) return Annotate(rows.status(), from.string());
    const size_t batch = static_cast<size_t>(*ElementCount(shape)) * ElementBytes(port.dtype);
    data.rows_.push_back(*std::move(rows));
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
