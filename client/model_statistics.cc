#include "client/model_statistics.h"

#include <algorithm>

namespace swizzle::client {
namespace {

TimedCount Since(const TimedCount& before, const TimedCount& after) {
  return {after.count - before.count, after.total - before.total};
}

// Whether `after` counts on from `before`: nothing of it went back.
bool CountsOn(const ModelStatistics& before, const ModelStatistics& after) {
  return before.name == after.name && before.version == after.version && before.rows <= after.rows &&
         before.batches <= after.batches && before.success.count <= after.success.count &&
         before.fail.count <= after.fail.count && before.success.total <= after.success.total;
}

std::vector<ModelStatistics::BatchSize> Since(const std::vector<ModelStatistics::BatchSize>& before,
                                              const std::vector<ModelStatistics::BatchSize>& after) {
  std::vector<ModelStatistics::BatchSize> sizes;
  for (const ModelStatistics::BatchSize& size : after) {
    const auto same = std::ranges::find(before, size.rows, &ModelStatistics::BatchSize::rows);
    const ModelStatistics::BatchSize then = same == before.end() ? ModelStatistics::BatchSize() : *same;
    if (size.compute.count == then.compute.count) continue;
    sizes.push_back(
        {size.rows, Since(then.input, size.input), Since(then.compute, size.compute), Since(then.output, size.output)});
  }
  return sizes;
}

}  // namespace

ModelStatistics Since(const ModelStatistics& before, const ModelStatistics& after) {
  if (!CountsOn(before, after)) return after;
  ModelStatistics between = after;
  between.rows -= before.rows;
  between.batches -= before.batches;
  for (TimedCount ModelStatistics::*stage :
       {&ModelStatistics::success, &ModelStatistics::fail, &ModelStatistics::queue, &ModelStatistics::input,
        &ModelStatistics::compute, &ModelStatistics::output, &ModelStatistics::cache_hit,
        &ModelStatistics::cache_miss}) {
    between.*stage = Since(before.*stage, after.*stage);
  }
  between.batch_sizes = Since(before.batch_sizes, after.batch_sizes);
  return between;
}

}  // namespace swizzle::client
