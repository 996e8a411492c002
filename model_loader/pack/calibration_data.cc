#include "model_loader/pack/calibration_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "kernels/base/dtype_row.h"
#include "model_loader/files/npz.h"

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

// The rows of one input, one after another.
StatusOr<std::vector<float>> RowsOf(const std::vector<NpyArray>& arrays, const NetworkPort& port, const Shape& row) {
  std::vector<float> rows;
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
    const size_t before = rows.size();
    rows.resize(before + array.bytes.size() / ElementBytes(array.dtype));
    if (array.dtype == DType::kUint8) {
      std::ranges::transform(array.bytes, rows.begin() + static_cast<std::ptrdiff_t>(before),
                             [](std::byte x) { return static_cast<float>(x); });
    } else if (!array.bytes.empty()) {
      std::memcpy(rows.data() + before, array.bytes.data(), array.bytes.size());
    }
  }
  if (std::ranges::any_of(rows, [](float value) { return std::isnan(value); })) {
    return InvalidArgument("input '", port.name, "' has values that are no numbers (NaN)");
  }
  return rows;
}

}  // namespace

StatusOr<CalibrationData> CalibrationData::Read(const std::filesystem::path& from, const Network& network) {
  CalibrationData data;
  SWIZZLE_ASSIGN_OR_RETURN(const auto arrays, ReadArrays(from, network.inputs));
  for (const NetworkPort& port : network.inputs) {
    const auto found = arrays.find(port.name);
    if (found == arrays.end()) return InvalidArgument(from.string(), " has no array for input '", port.name, "'");
    Shape row = port.dims;
    if (network.batch_size > 0) row.erase(row.begin());
    auto rows = RowsOf(found->second, port, row);
    if (!rows.ok()) return Annotate(rows.status(), from.string());
    data.elements_.push_back(static_cast<size_t>(network.values[port.value].elements()));
    data.batch_ = std::max<size_t>(static_cast<size_t>(network.batch_size), 1);
    const size_t batches = rows->size() / data.elements_.back() / data.batch_;
    data.batches_ = data.rows_.empty() ? batches : std::min(data.batches_, batches);
    data.rows_.push_back(*std::move(rows));
  }
  if (data.batches_ == 0) return InvalidArgument(from.string(), " has not one batch for every input");
  return data;
}

std::vector<std::vector<float>> CalibrationData::Batch(size_t index) const {
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const size_t elements = elements_[i] * batch_;
    const auto first = rows_[i].begin() + static_cast<std::ptrdiff_t>(index * elements);
    inputs.emplace_back(first, first + static_cast<std::ptrdiff_t>(elements));
  }
  return inputs;
}

Network Watched(Network network, const std::vector<int>& values) {
  network.outputs.clear();
  for (const int value : values) {
    const NetworkValue& watched = network.values[value];
    Shape dims = {watched.channels, watched.height, watched.width};
    if (network.batch_size > 0) dims.insert(dims.begin(), network.batch_size);
    network.outputs.push_back({Concat("value ", value), DType::kFloat32, std::move(dims), value});
  }
  return network;
}

}  // namespace swizzle::pack
