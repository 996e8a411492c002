// Runs a drawn graph in all the ways that models run in, and compares what comes out.
#ifndef SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_COMPARE_H_
#define SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_COMPARE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/conformance/random_graphs/drawer.h"
#include "tests/kernels/fake_device.h"

namespace swizzle::random_graphs {

// The ways, in the order in which they are tried. Requests run node by node first, each node on its own
// (evaluation.h): that is what all others have to agree with.
enum class Way : uint8_t {
  kInterpreter,   // the whole graph
  kBatch,         // requests in one batch, where the graph's rows are said to be independent
  kRegions,       // plans of regions on the host, sizes one after another and some again
  kRegionsBatch,  // the same for requests in one batch
  kDevice,        // regions and what is between them on a device
  kDeviceBatch,
};

const char* NameOf(Way way);

struct Difference {
  Way way = Way::kInterpreter;
  std::string text;
};

// What was reached, and the first way that differed.
struct Comparison {
  bool is_valid = true;  // else nothing can be said: nodes refuse, or their results go by roundings
  bool has_independent_rows = false;
  bool has_regions = false;
  bool has_device_regions = false;
  std::optional<Difference> difference = std::nullopt;
};

// Single-owner.
class Comparer {
 public:
  Comparer();

  Stream& stream() { return *stream_; }
  // `seed`: of the inputs' elements. In a process of its own: what ends it, or takes more than a minute, differs in the
  // way that was under way.
  Comparison Compare(const Drawing& drawing, uint64_t seed);

 private:
  // All ways run in this process. `begins` is told of each before it is tried.
  Comparison CompareHere(const Drawing& drawing, uint64_t seed, const std::function<void(Way)>& begins);

  const std::unique_ptr<Backend> host_;
  FakeDevice device_;
  const std::unique_ptr<Stream> stream_;
};

}  // namespace swizzle::random_graphs

#endif  // SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_COMPARE_H_
