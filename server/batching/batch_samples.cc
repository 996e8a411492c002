#include "server/batching/batch_samples.h"

#include "server/tracing/sampled_request.h"

namespace swizzle {

void TellSamples(const Batch& batch) noexcept {
  SampledRequest* first = nullptr;  // of those that are traced
  for (const auto& pending : batch.requests) {
    SampledRequest* const sample = pending->request.sample;
    if (sample == nullptr) continue;
    if (pending->rows_before == 0) sample->stages.emplace().begun = batch.start;
    SampledRequest::Stages& stages = *sample->stages;
    stages.queued = pending->arrival;
    stages.input += batch.times.input;
    stages.compute += batch.times.compute;
    stages.output += batch.times.output;
    stages.batch_rows = batch.rows;
    if (!sample->traced) continue;
    try {
      if (first == nullptr) {
        first = sample;
        first->in_batch = {NewTraceId(), NewSpanId()};
        first->batch = {.reason = batch.reason, .requests = static_cast<int64_t>(batch.requests.size()), .links = {}};
      }
      sample->in_batch = first->in_batch;
      if (first->batch->links.size() < SampledRequest::Batch::kMostLinks) first->batch->links.push_back(sample->place);
    } catch (...) {  // there is no memory for the link: the trace is without it
    }
  }
}

}  // namespace swizzle
