// Rows of data for a convolutional network's inputs, to see what its layers read. Immutable.
#ifndef SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_
#define SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/tensor.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/run/plan_runner.h"

namespace swizzle::pack {

// Batches of a network's inputs: of its own batch size where that is fixed, else of one row.
class CalibrationData {
 public:
  // From an .npz file that has an array for each input, or a folder of .npy files, each called after its input; those
  // of a model with one input may be called anything, and are taken one after another. Errors name file and input.
  static StatusOr<CalibrationData> Read(const std::filesystem::path& from, const Network& network);

  size_t batches() const { return batches_; }
  std::vector<TensorView> Batch(size_t index) const;  // by input

 private:
  std::vector<std::vector<std::byte>> rows_;  // by input
  std::vector<TensorView> first_;             // by input: the first batch
  size_t batches_ = 0;
};

// The elements of FP32 or UINT8.
std::vector<float> FloatsOf(const TensorView& view);

// Runs batches of the network whose outputs are these values, in their order. threads: 0 takes all.
StatusOr<std::unique_ptr<PlanRunner>> NewWatchingRunner(Network network, const std::vector<int>& values,
                                                        Backend& backend, int threads);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_
