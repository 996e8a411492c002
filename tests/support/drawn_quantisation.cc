#include "tests/support/drawn_quantisation.h"

#include <random>
#include <vector>

#include "model_loader/quantising/quantiser.h"

namespace swizzle::testing {

Status QuantiseDrawn(Network& network) {
  if (network.sequences) return QuantiseSequenceNetwork(network, {}).status();
  constexpr size_t kOfChannel = 16;
  std::mt19937 random(1);
  std::vector<Observer> observers;
  for (const NetworkValue& value : network.values) {
    std::normal_distribution<float> normal(0.25f, 1.0f);
    std::vector<float> seen(static_cast<size_t>(value.channels) * kOfChannel);
    for (float& element : seen) element = normal(random);
    Observer& observer = observers.emplace_back();
    observer.SeeRange(seen);
    observer.SeeValues(seen, value.channels);
  }
  return QuantiseNetwork(network, observers, {}).status();
}

}  // namespace swizzle::testing
