// What one executor runs a DeviceProgram with: a stream on the device, one of the host's for what is interpreted,
// memory that its runs take one after another, and for each set of the inputs' shapes its recording. Batches of many
// rows, where rows are independent, are filled up to the next of a few sizes, so that not each has to be recorded.
// Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_OFFLOAD_RUNNER_H_
#define SWIZZLE_MODEL_LOADER_OFFLOAD_RUNNER_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model_loader/offload/device_program.h"

namespace swizzle::offload {

// What runs of one set of shapes have in common.
struct ShapeState {
  std::vector<Shape> shapes;                         // of the inputs
  std::shared_ptr<interpreter::BlockStore> memory;   // of all runs, of whatever shapes
  std::vector<std::shared_ptr<Buffer>> inputs = {};  // staged, in host memory; null: none was yet
  std::vector<std::byte*> direct = {};  // by input, where the recording reads it; null: it copies what is staged
  std::vector<std::shared_ptr<Buffer>> outputs = {};              // null: the value is the host's
  std::vector<interpreter::Array> results = {};                   // of the last run, on the host
  std::map<int, interpreter::Array> stable = {};                  // values that depend on shapes alone, on the device
  std::map<std::pair<int, int>, interpreter::Array> tables = {};  // by node, in the order in which it uploads them
  std::vector<std::shared_ptr<const void>> used = {};  // by queued work, since the last run that was no replay began
  uint64_t version = 0;                                // of the program, when it last ran unrecorded
  int tries = 0;                                       // to record it, in this version
  std::unique_ptr<Recording> recording = nullptr;      // null: none yet. Destroyed before what it uses
};

// Where a run's input is copied to the device from, apart from what is recorded: from pinned memory, piece by piece, or
// from where it was staged. No pieces: it isn't, and lies on the host until something on the device reads it.
using InputCopies = std::vector<std::span<const std::byte>>;
void QueueCopies(const InputCopies& copies, std::byte* to, Stream& stream);

// To queue a copy costs about as much as to move so many bytes on the host: fewer are not worth a copy of their own.
inline constexpr size_t kLeastCopied = size_t{64} << 10;

// How many rows are run for so many: all sizes up to 8, then four between a power of two and the next.
int64_t FilledRows(int64_t rows);

class Runner final : public interpreter::ProgramRunner {
 public:
  // How many sets of shapes are kept. They and their memory are given up where a run finds none, and where its inputs
  // are more than a fifth larger than before: smaller ones then fit into what it takes, and little more is held.
  static constexpr size_t kMostStates = 24;

  static StatusOr<std::unique_ptr<Runner>> Make(const DeviceProgram& program, Backend& host, int threads,
                                                const interpreter::Limits& limits);
  ~Runner() override;

  StatusOr<std::vector<interpreter::Array>> RunArrays(std::span<const TensorPieces> inputs) override;
  int threads(int64_t) const override { return 1; }
  // Of the last run that was no replay.
  const Placement& placement() const { return placement_; }
  // Of the device's memory.
  size_t held_bytes() const { return memory_.blocks->held_bytes(); }

 private:
  Runner(const DeviceProgram& program, const interpreter::Limits& limits)
      : program_(program), limits_(limits), memory_(program.device()) {}

  ShapeState& StateFor(std::vector<Shape> shapes);
  void GiveUpAllBut(size_t kept);
  Status CheckInputs(std::span<const TensorPieces> inputs) const;
  std::vector<Shape> RunShapes(std::span<const TensorPieces> inputs) const;
  // Fills copies_, and stages what is not copied from where it is.
  Status Stage(std::span<const TensorPieces> inputs, ShapeState& state);
  Status StageInput(const TensorPieces& input, size_t bytes, std::shared_ptr<Buffer>& staged) const;
  Status Replay(const ShapeState& state);
  Status RunUnrecorded(ShapeState& state);
  Status CheckIndices() const;

  const DeviceProgram& program_;
  const interpreter::Limits limits_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Stream> host_stream_;
  std::unique_ptr<Buffer> bad_index_, noted_index_;  // on the device, and in host memory: what it is reset to, and was
  DeviceStore memory_;                               // outlives states_, whose recordings use it
  std::list<ShapeState> states_;                     // what ran last comes first
  int64_t held_elements_ = 0;                        // of the inputs that memory was first taken for
  Placement placement_;
  std::vector<InputCopies> copies_;  // by input, of the run
  std::vector<bool> read_on_host_;   // by input: it is staged there
  bool fills_ = true;                // until a run cannot be recorded
};

}  // namespace swizzle::offload

#endif  // SWIZZLE_MODEL_LOADER_OFFLOAD_RUNNER_H_
