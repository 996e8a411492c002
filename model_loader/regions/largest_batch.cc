#include "model_loader/regions/largest_batch.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/base/integers.h"

namespace swizzle::regions {
namespace {

// What the values of a plan's largest batch may take, one by one: the caches of today's processors hold some of it.
constexpr int64_t kBatchBytes = int64_t{1} << 22;
constexpr int64_t kMostImages = 64;
// A device is filled by so much.
constexpr int64_t kMostDeviceRows = int64_t{1} << 16, kDeviceBatchBytes = int64_t{1} << 28;

int64_t RowsOfPacks(const Network& network) {
  int64_t rows = 1;
  for (const auto* ports : {&network.inputs, &network.outputs}) {
    for (const NetworkPort& port : *ports) {
      const int64_t row_bytes = *ElementCount(port.dims) * static_cast<int64_t>(ElementBytes(port.dtype));
      rows = std::max(rows, RowsOfPack(row_bytes));
    }
  }
  return rows;
}

// Rows, or tokens where there are sequences: a row's value is its tokens' in equal parts.
int64_t RowsWithin(int64_t bytes, const Network& network) {
  const int64_t tokens = network.sequences ? std::max<int64_t>(network.sequences->length, 1) : 1;
  int64_t row = 1;
  for (const NetworkValue& value : network.values) {
    row = std::max(row, value.per_token ? value.elements() : CeilDiv(value.elements(), tokens));
  }
  return bytes / (row * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

int64_t RowsOfPack(int64_t row_bytes) {
  constexpr int64_t kPackBytes = 16;
  return kPackBytes / std::gcd(kPackBytes, row_bytes);
}

int64_t LargestBatch(const Network& network, Form form, interpreter::Place place) {
  const bool vectors = form == Form::kVectors;
  if (place == interpreter::Place::kHost) {
    return std::clamp<int64_t>(RowsWithin(kBatchBytes, network), 1, vectors ? kMostRows : kMostImages);
  }
  const int64_t most =
      std::clamp<int64_t>(RowsWithin(kDeviceBatchBytes, network), 1, vectors ? kMostDeviceRows : kMostImages);
  // Powers of two, so that the greater is a multiple of the other.
  return std::max(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))), RowsOfPacks(network));
}

BatchSize LargestSequences(const Network& network, interpreter::Place place) {
  // Sequences of any length are taken whole: their attention reads them so.
  constexpr int64_t kMostFreeLength = int64_t{1} << 14;
  const bool on_host = place == interpreter::Place::kHost;
  const int64_t length = network.sequences->length;
  const int64_t tokens = std::clamp<int64_t>(RowsWithin(on_host ? kBatchBytes : kDeviceBatchBytes, network), 1,
                                             on_host ? kMostRows : kMostDeviceRows);
  if (length == 0) return {kMostImages, std::max(tokens, kMostFreeLength)};
  const auto rows = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(tokens / length, 1))));
  const int64_t most = std::max(std::min(rows, kMostImages), on_host ? 1 : RowsOfPacks(network));
  return {most, most * length};
}

}  // namespace swizzle::regions
