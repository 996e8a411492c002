// A program whose values lie on a device: regions run there by plans, what has a function there (operators.h) runs
// beside them, and the rest on the host.
//
// A value is where it was made, and is copied once somebody on the other side reads it. What depends on shapes alone
// stays on the host, always: it is read there, and costs no copy. Where nothing else runs on the host, a run is
// recorded for each set of the inputs' shapes, and replayed.
//
// Immutable but for the constants' copies on the device, which all runners share; thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_OFFLOAD_DEVICE_PROGRAM_H_
#define SWIZZLE_MODEL_LOADER_OFFLOAD_DEVICE_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/backend/backend.h"
#include "kernels/base/mutex.h"
#include "model_loader/interpreter/run/program_runner.h"
#include "model_loader/offload/device_blocks.h"
#include "model_loader/offload/operators.h"

namespace swizzle::offload {

// Where a run's nodes were, but for those of parts. Value type.
struct Placement {
  int device_nodes = 0;
  int shape_nodes = 0;                   // on the host, of shapes alone
  int host_nodes = 0;                    // interpreted, between copies
  std::map<std::string, int> operators;  // of host_nodes
  std::set<int> on_host = {};            // shape_nodes and host_nodes

  std::string OperatorCounts() const;  // "NonZero:1,TopK:1"
};

class DeviceProgram {
 public:
  struct Traits {
    bool shapes_follow = false;  // whether no shape depends on the elements of an input
    Precision precision = Precision::kFloat32;
  };
  // `program` is divided into parts of which some run on the device. `host` and `device`, whose functions these are,
  // outlive the result and its runners.
  DeviceProgram(std::shared_ptr<const interpreter::Program> program, Traits traits, Backend& host,
                DeviceBackend& device, const DeviceFunctions& functions);

  // Runs it once, on zeros of these shapes, and notes where its nodes were and what it took. Errors are those of a run.
  Status Try(const std::vector<Shape>& inputs, const interpreter::Limits& limits);
  const Placement& placement() const { return placement_; }
  const interpreter::RunMemory& run_memory() const { return run_memory_; }

  StatusOr<std::unique_ptr<interpreter::ProgramRunner>> NewRunner(int threads, const interpreter::Limits& limits) const;

  // For runners.
  const interpreter::Program& program() const { return *program_; }
  bool shapes_follow() const { return traits_.shapes_follow; }
  Precision precision() const { return traits_.precision; }
  DeviceBackend& device() const { return device_; }
  const DeviceFunctions& functions() const { return functions_; }
  // Whether a value depends on no input's elements, only on their shapes.
  bool IsStable(int value) const { return !by_elements_[static_cast<size_t>(value)]; }
  bool IsConstant(int value) const { return constants_.contains(value); }
  // Another one since a part runs otherwise than before.
  uint64_t version() const;
  bool picks() const { return picks_; }  // whether a node may read an index that is out of range
  // A constant's elements on the device. The stream is waited for.
  StatusOr<interpreter::Array> Constant(int value, DeviceStream& stream) const;
  // What constants take there so far.
  int64_t constant_bytes() const;

 private:
  // UNIMPLEMENTED, naming what is none, unless inputs are numbers and nodes hold no graphs.
  Status CheckValues() const;

  const std::shared_ptr<const interpreter::Program> program_;
  const Traits traits_;
  Backend& host_;
  DeviceBackend& device_;
  const DeviceFunctions& functions_;
  std::map<int, interpreter::Array> constants_;  // on the host
  std::vector<bool> by_elements_;                // by value; graph/shape_flow.h
  bool picks_ = false;
  Placement placement_;
  interpreter::RunMemory run_memory_;
  const std::shared_ptr<interpreter::Memory> memory_;  // of constants
  mutable Mutex mutex_;
  mutable std::map<int, interpreter::Array> uploaded_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle::offload

#endif  // SWIZZLE_MODEL_LOADER_OFFLOAD_DEVICE_PROGRAM_H_
