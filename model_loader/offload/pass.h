// One run of a DeviceProgram, turn by turn. Used once, within Run or Record of the stream.
#ifndef SWIZZLE_MODEL_LOADER_OFFLOAD_PASS_H_
#define SWIZZLE_MODEL_LOADER_OFFLOAD_PASS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model_loader/offload/runner.h"

namespace swizzle::offload {

class Pass final : private interpreter::Device {
 public:
  struct Streams {
    DeviceStream& device;
    Stream& host;
  };
  // All outlive it. recording: it may only queue work that runs alike each time. bad_index: Device::bad_index.
  // copies: of each input; none is made while recording.
  Pass(const DeviceProgram& program, ShapeState& state, std::span<const InputCopies> copies, Streams streams,
       const interpreter::Limits& limits, bool recording, int32_t* bad_index);

  // Afterwards state.results are the outputs; those that a device made are there when its stream has ended.
  Status Run();
  // Whether all that it did can be recorded.
  bool recordable() const { return recordable_; }
  const Placement& placement() const { return placement_; }
  // Inputs, by index, that were copied to the device, and then back since a node on the host reads them.
  const std::vector<size_t>& returned() const { return returned_; }

 private:
  struct Value {
    interpreter::Array host, device;  // left out: not there
  };

  DeviceStream& stream() override { return streams_.device; }
  interpreter::Memory& memory() override { return *memory_; }
  interpreter::Memory& host() override { return *host_memory_; }
  const DeviceFunctions& functions() const override { return program_.functions(); }
  DType factors() const override { return TypeOf(program_.precision()); }
  StatusOr<interpreter::Array> Upload(const interpreter::Array& array) override;
  void Keep(std::shared_ptr<const void> used) override { state_.used.push_back(std::move(used)); }
  int32_t* bad_index() override { return bad_index_; }
  int32_t bad_index_mark() const override { return node_ + 1; }

  Value& At(int value) { return values_[static_cast<size_t>(value)]; }
  const Node& NodeAt(int index) const { return program_.program().graph().nodes[static_cast<size_t>(index)]; }
  // The value there. `moved`: it need not be made.
  StatusOr<interpreter::Array> OnDevice(int value, bool moved = false);
  StatusOr<interpreter::Array> OnHost(int value, bool moved = false);
  StatusOr<interpreter::Array> Copied(const interpreter::Array& host);
  Status PlaceInputs();
  Status RunTurn(const interpreter::Program::Turn& turn);
  // Whether the part ran there.
  StatusOr<bool> RunPart(const interpreter::PartOfProgram& part);
  Status RunNode(int index);
  // UNIMPLEMENTED where it has to run on the host.
  StatusOr<interpreter::Results> RunOnDevice(int index, const DeviceOperator& function);
  Status RunOnHost(int index);
  Status FetchOutputs();

  const DeviceProgram& program_;
  ShapeState& state_;
  const std::span<const InputCopies> copies_;
  const Streams streams_;
  const bool recording_;
  int32_t* const bad_index_;
  const std::shared_ptr<interpreter::Memory> memory_, host_memory_;
  std::vector<Value> values_;             // of the graph
  std::vector<interpreter::Array> kept_;  // of the host's, until they are copied
  int node_ = 0, uploads_of_node_ = 0;    // the node that runs
  bool recordable_ = true;
  std::vector<size_t> returned_;
  Placement placement_;
};

}  // namespace swizzle::offload

#endif  // SWIZZLE_MODEL_LOADER_OFFLOAD_PASS_H_
