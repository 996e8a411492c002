#include "server/tracing/sampled_request.h"

namespace swizzle {

void SampledRequest::SetId(std::string_view whole) {
  constexpr size_t kMostId = 128;
  size_t size = whole.size();
  if (size > kMostId) {
    size = kMostId;
    while (size > 0 && (static_cast<uint8_t>(whole[size]) & 0xc0) == 0x80) --size;  // within a character
  }
  id = whole.substr(0, size);
}

std::unique_ptr<SampledRequest> SampledRequest::Step(Instant now) const {
  auto step = std::make_unique<SampledRequest>();
  step->traced = traced;
  step->parent = parent;
  step->place = {place.trace, NewSpanId()};
  step->start = now;
  step->wall_start = wall_start + (now - start);
  return step;
}

}  // namespace swizzle
