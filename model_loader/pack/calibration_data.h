// Rows of data for a convolutional network's inputs, to see what its layers read. Immutable.
#ifndef SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_
#define SWIZZLE_MODEL_LOADER_PACK_CALIBRATION_DATA_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/tensor.h"
#include "model_loader/compiled/model_interface.h"
#include "model_loader/files/npz.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/run/plan_runner.h"

namespace swizzle::pack {

// The arrays of calibration data for a model's inputs: of an .npz file that has one for each, or a folder of .npy
// files, each called after its input. Files of a model with one input may be called anything, and so may arrays of an
// archive where `any_name` says so; the rows of all such are taken one after another. Errors name what is wrong with
// which file.
StatusOr<NpyArrays> ReadCalibration(const std::filesystem::path& from, std::span<const interpreter::Port> inputs,
                                    bool any_name = false);

// Batches of a network's inputs: of its own batch size where that is fixed, else of one row.
class CalibrationData {
 public:
  // Of what ReadCalibration finds there by any name. Errors name file and input.
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
