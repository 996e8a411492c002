#include "server/repository/model_memory.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include "kernels/base/tensor.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// With one for each free dimension.
int64_t ElementsOf(const Shape& dims) {
  Shape least = dims;
  for (int64_t& dim : least) dim = std::max<int64_t>(dim, 1);
  constexpr int64_t kUncountable = int64_t{1} << 55;
  return std::min(ElementCount(least).value_or(kUncountable), kUncountable);
}

int64_t BytesOf(const std::vector<TensorSpec>& tensors) {
  int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) {
    bytes += ElementsOf(tensor.dims) * static_cast<int64_t>(ElementBytes(tensor.dtype));
  }
  return bytes;
}

int64_t BytesOnDisk(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

// Of one executor on a device, for libraries' workspaces, and runs that are recorded.
constexpr int64_t kStreamBytes = int64_t{64} << 20;

// Rows, or tokens, of the plan's batches.
void SetBatches(const Plan& plan, MemoryNeed& need) {
  const Network& network = plan.network();
  if (network.sequences) {
    need.largest = plan.max_tokens();
    need.least = std::max<int64_t>(network.sequences->length, 1);
  } else {
    need.largest = plan.max_batch();
    need.least = 1;
  }
  if (network.batch_size > 0) need.least = need.largest;
  need.least = std::min(need.least, need.largest);
}

// Of a run of the largest batch; of a whole request where there are no batches.
int64_t BytesOfLargest(const interpreter::RunMemory& run, const ModelSpec& spec) {
  if (spec.max_batch_size == 0) return run.bytes;
  constexpr double kUnheardOf = 1e18;
  const double runs = static_cast<double>(spec.max_batch_size) / static_cast<double>(run.rows);
  return static_cast<int64_t>(std::min(static_cast<double>(run.bytes) * runs, kUnheardOf));
}

}  // namespace

MemoryNeed NeedOf(const ModelSpec& spec, const Plan& plan) {
  MemoryNeed need = NeedOf(spec, interpreter::RunMemory());
  need.arena = plan.report().backend == "cpu" ? static_cast<int64_t>(plan.arena_bytes()) : 0;
  SetBatches(plan, need);
  return need;
}

MemoryNeed NeedOnDevice(const ModelSpec& spec, const Plan& plan) {
  MemoryNeed need;
  need.executors = spec.instance_count;
  need.stream = kStreamBytes;
  need.arena = static_cast<int64_t>(plan.arena_bytes());
  SetBatches(plan, need);
  return need;
}

MemoryNeed NeedOf(const ModelSpec& spec, const interpreter::RunMemory& run) {
  MemoryNeed need;
  need.executors = spec.executors();
  need.row = BytesOf(spec.inputs) + BytesOf(spec.outputs);
  need.largest = std::max<int64_t>(spec.max_batch_size, 1);
  need.arena = BytesOfLargest(run, spec);
  return need;
}

MemoryNeed NeedOnDevice(const ModelSpec& spec, const interpreter::RunMemory& run) {
  MemoryNeed need;
  need.executors = spec.instance_count;
  need.stream = kStreamBytes;
  need.largest = std::max<int64_t>(spec.max_batch_size, 1);
  need.arena = BytesOfLargest(run, spec);
  return need;
}

int64_t MostOfOneRun(const ModelSpec& spec, const MemoryRoom& room, int64_t left, int64_t most) {
  if (room.limit == 0) return most;
  return std::clamp<int64_t>(left / 2 / spec.executors(), 0, most);
}

void LowerBatch(int64_t largest, ModelSpec& spec) {
  if (spec.max_batch_tokens > 0) spec.max_batch_tokens = std::min(spec.max_batch_tokens, largest);
  spec.max_batch_size = std::min(spec.max_batch_size, largest);
  std::erase_if(spec.preferred_batch_sizes, [&](int64_t rows) { return rows > spec.max_batch_size; });
}

int64_t FileBytes(const fs::path& file) {
  if (!std::string_view(file.native()).ends_with(".index.json")) return BytesOnDisk(file);
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(file.parent_path(), error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".safetensors") bytes += BytesOnDisk(it->path());
  }
  return bytes;
}

}  // namespace swizzle
