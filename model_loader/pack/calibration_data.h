// Rows of data for a convolutional network's inputs, to see what its layers read. Immutable.
#ifndef SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_
#define SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_

#include <cstddef>
#include <filesystem>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle::pack {

// Batches of a network's inputs: of its own batch size where that is fixed, else of one row.
class CalibrationData {
 public:
  // From an .npz file that has an array for each input, or a folder of .npy files, each called after its input; those
  // of a model with one input may be called anything, and are taken one after another. Errors name file and input.
  static StatusOr<CalibrationData> Read(const std::filesystem::path& from, const Network& network);

  size_t batches() const { return batches_; }
  std::vector<std::vector<float>> Batch(size_t index) const;  // by input

 private:
  std::vector<std::vector<float>> rows_;  // by input
  std::vector<size_t> elements_;          // of a row, by input
  size_t batch_ = 1;
  size_t batches_ = 0;
};

// The network with these values as its outputs, in their order.
Network Watched(Network network, const std::vector<int>& values);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_
