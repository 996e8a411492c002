#include "model_loader/offload/runner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/base/integers.h"
#include "model_loader/offload/pass.h"

namespace swizzle::offload {

using interpreter::Array;

StatusOr<std::unique_ptr<Runner>> Runner::Make(const DeviceProgram& program, Backend& host, int threads,
                                               const interpreter::Limits& limits) {
  std::unique_ptr<Runner> runner(new Runner(program, limits));
  SWIZZLE_ASSIGN_OR_RETURN(runner->stream_, program.device().NewDeviceStream());
  SWIZZLE_ASSIGN_OR_RETURN(runner->host_stream_, host.NewStream(threads));
  SWIZZLE_ASSIGN_OR_RETURN(runner->bad_index_, program.device().Allocate(sizeof(int32_t)));
  SWIZZLE_ASSIGN_OR_RETURN(runner->noted_index_, program.device().AllocateHost(2 * sizeof(int32_t)));
  return runner;
}

Runner::~Runner() { stream_->Synchronize().IgnoreError(); }

void QueueCopies(const InputCopies& copies, std::byte* to, Stream& stream) {
  for (const auto& piece : copies) {
    stream.Copy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

int64_t FilledRows(int64_t rows) {
  if (rows <= 8) return rows;
  const auto quarter = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows - 1))) / 4;
  return CeilDiv(rows, quarter) * quarter;
}

ShapeState& Runner::StateFor(std::vector<Shape> shapes) {
  if (!program_.shapes_follow() && !states_.empty()) {  // all shapes have one
    states_.front().shapes = std::move(shapes);
    memory_.store->BeginRun();
    return states_.front();
  }
  const auto found = std::ranges::find(states_, shapes, &ShapeState::shapes);
  if (found != states_.end()) {
    states_.splice(states_.begin(), states_, found);
    return states_.front();
  }
  int64_t elements = 0;
  for (const Shape& shape : shapes) elements += ProductOf(shape, 0, static_cast<int64_t>(shape.size()));
  if (elements > held_elements_ + held_elements_ / 5) {
    GiveUpAllBut(0);
    held_elements_ = elements;
  }
  states_.push_front({std::move(shapes), memory_.store});
  if (states_.size() > kMostStates) states_.pop_back();
  return states_.front();
}

// REQUIRES: none of the first `kept` states has a recording.
void Runner::GiveUpAllBut(size_t kept) {
  states_.resize(std::min(states_.size(), kept));
  memory_.store->FreeKept();
}

// What is filled up has the last rows' elements, with which nothing can go wrong that does not without them.
Status Runner::StageInput(const TensorPieces& input, size_t bytes, std::shared_ptr<Buffer>& staged) const {
  if (staged == nullptr || staged->bytes() < bytes) {
    SWIZZLE_ASSIGN_OR_RETURN(staged, program_.device().AllocateHost(bytes));
  }
  size_t at = 0;
  for (const auto& piece : input.pieces) {
    if (!piece.empty()) std::memcpy(staged->data() + at, piece.data(), piece.size());
    at += piece.size();
  }
  const size_t row = at == bytes ? 0 : at / static_cast<size_t>(input.shape[0]);
  for (; at < bytes; at += row) std::memcpy(staged->data() + at, staged->data() + at - row, row);
  return {};
}

Status Runner::Stage(std::span<const TensorPieces> inputs, ShapeState& state) {
  state.inputs.resize(inputs.size());
  read_on_host_.resize(inputs.size());
  copies_.assign(inputs.size(), {});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorPieces& input = inputs[i];
    const size_t given = input.bytes();
    const bool fills = state.shapes[i] != input.shape;
    const size_t bytes =
        fills ? given / static_cast<size_t>(input.shape[0]) * static_cast<size_t>(state.shapes[i][0]) : given;
    const bool copies =
        state.recording != nullptr ? state.direct[i] != nullptr : bytes >= kLeastCopied && !read_on_host_[i];
    if (copies && input.is_pinned && given / input.pieces.size() >= kLeastCopied) {
      copies_[i] = input.pieces;
      for (size_t at = given; at < bytes;) {
        const auto& last = input.pieces.back();
        copies_[i].push_back(last.first(std::min(last.size(), bytes - at)));
        at += copies_[i].back().size();
      }
      continue;
    }
    SWIZZLE_RETURN_IF_ERROR(StageInput(input, bytes, state.inputs[i]));
    if (copies) copies_[i] = {std::span(state.inputs[i]->data(), bytes)};
  }
  return {};
}

// The inputs' shapes, filled up where they may be.
std::vector<Shape> Runner::RunShapes(std::span<const TensorPieces> inputs) const {
  std::vector<Shape> shapes;
  for (const TensorPieces& input : inputs) shapes.push_back(input.shape);
  if (!fills_ || !program_.program().rows_are_independent() || !program_.shapes_follow()) return shapes;
  const int64_t rows = shapes.front().front();
  const auto may_be_filled = [&](const Shape& shape) {
    return shape.front() == rows && std::ranges::find(shape, 0) == shape.end();
  };
  if (!std::ranges::all_of(shapes, may_be_filled)) return shapes;
  for (Shape& shape : shapes) shape.front() = FilledRows(rows);
  return shapes;
}

Status Runner::CheckIndices() const {
  if (!program_.picks()) return {};
  const int32_t mark = reinterpret_cast<const int32_t*>(noted_index_->data())[1];
  if (mark == 0) return {};
  const Node& node = program_.program().graph().nodes[static_cast<size_t>(mark - 1)];
  return InvalidArgument(Describe(node), ": an index is out of range");
}

Status Runner::RunUnrecorded(ShapeState& state) {
  auto* const bad_index = reinterpret_cast<int32_t*>(bad_index_->data());
  auto* const noted = reinterpret_cast<int32_t*>(noted_index_->data());
  const auto run = [&](Pass& pass) -> Status {
    if (program_.picks()) stream_->Copy(bad_index, noted, sizeof(int32_t));
    SWIZZLE_RETURN_IF_ERROR(pass.Run());
    if (program_.picks()) stream_->Copy(noted + 1, bad_index, sizeof(int32_t));
    return {};
  };
  const Pass::Streams streams = {*stream_, *host_stream_};
  bool recordable = false;
  Status status;
  {
    Pass pass(program_, state, copies_, streams, limits_, false, bad_index);
    stream_->Run([&] { status = run(pass); });
    const Status ended = stream_->Synchronize();
    SWIZZLE_RETURN_IF_ERROR(host_stream_->Synchronize());
    SWIZZLE_RETURN_IF_ERROR(status);
    SWIZZLE_RETURN_IF_ERROR(ended);
    placement_ = pass.placement();
    for (const size_t input : pass.returned()) read_on_host_[input] = true;
    recordable = pass.recordable();
  }
  constexpr int kMostTries = 3;  // the first may lack a block that was taken twice
  fills_ = fills_ && recordable;
  if (!recordable || state.tries == kMostTries) return {};
  ++state.tries;
  memory_.blocks->Freeze(true);
  // The batch has been computed, so a recording that cannot be made fails nothing: the shape goes on unrecorded.
  std::vector<Array> results = state.results;
  StatusOr<std::unique_ptr<Recording>> recording = stream_->Record([&] {
    Pass pass(program_, state, copies_, streams, limits_, true, bad_index);
    status = run(pass);
  });
  memory_.blocks->Freeze(false);
  state.results = std::move(results);
  if (recording.ok() && status.ok()) state.recording = *std::move(recording);
  return {};
}

Status Runner::CheckInputs(std::span<const TensorPieces> inputs) const {
  SWIZZLE_CHECK(inputs.size() == program_.program().inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorPieces& input = inputs[i];
    SWIZZLE_RETURN_IF_ERROR(program_.program().CheckInput(i, {input.dtype, input.shape, {}}));
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(input.shape));
    if (input.bytes() != static_cast<size_t>(elements) * ElementBytes(input.dtype)) {
      return InvalidArgument("input '", program_.program().inputs()[i].name, "' has ", input.bytes(), " bytes for ",
                             ShapeText(input.shape));
    }
  }
  return {};
}

// It ends only once nothing is queued any more that reads the inputs.
Status Runner::Replay(const ShapeState& state) {
  const auto queue = [&] {
    for (size_t i = 0; i < copies_.size(); ++i) {
      if (!copies_[i].empty()) QueueCopies(copies_[i], state.direct[i], *stream_);
    }
  };
  if (std::ranges::any_of(copies_, [](const InputCopies& copies) { return !copies.empty(); })) stream_->Run(queue);
  const Status replayed = state.recording->Replay();
  const Status ended = stream_->Synchronize();
  return replayed.ok() ? ended : replayed;
}

StatusOr<std::vector<Array>> Runner::RunArrays(std::span<const TensorPieces> inputs) {
  SWIZZLE_RETURN_IF_ERROR(CheckInputs(inputs));
  ShapeState& state = StateFor(RunShapes(inputs));
  if (const uint64_t version = program_.version(); version != state.version) {
    state.recording = nullptr;
    state.version = version;
    state.tries = 0;
  }
  SWIZZLE_RETURN_IF_ERROR(Stage(inputs, state));
  if (state.recording != nullptr) {
    SWIZZLE_RETURN_IF_ERROR(Replay(state));
  } else {
    Status status = RunUnrecorded(state);
    if (absl::IsResourceExhausted(status) && states_.size() > 1) {
      GiveUpAllBut(1);
      status = RunUnrecorded(state);
    }
    SWIZZLE_RETURN_IF_ERROR(status);
  }
  SWIZZLE_RETURN_IF_ERROR(CheckIndices());
  std::vector<Array> results = state.results;
  if (!inputs.empty() && state.shapes[0] != inputs[0].shape) {
    for (Array& result : results) result.shape[0] = inputs[0].shape[0];
  }
  return results;
}

}  // namespace swizzle::offload
