#include "kernels/cpu/tokens/plane_tokens.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/bfloat16.h"
#include "kernels/cpu/tokens/token_layout.h"
#include "kernels/format/transpose.h"

namespace swizzle::cpu {
namespace {

// What is added to the tokens of a sequence, [channels][length]. Immutable.
class AddedVectors final : public PackedWeight {
 public:
  explicit AddedVectors(const DenseMatrix& matrix)
      : length(matrix.rows), values(Transposed(matrix.values, matrix.rows, matrix.cols)) {}
  size_t bytes() const override { return values.size() * sizeof(float); }

  const int64_t length;
  const std::vector<float> values;
};

// Neighbouring tokens of one sequence that have neighbouring positions of its plane, or none.
struct Piece {
  int64_t place;
  int64_t count;
  bool has_positions = false;
  int64_t from = 0, channel_stride = 0;  // where those of the first channel begin; elements
};

template <typename T>
class Run {
 public:
  explicit Run(const KernelArgs& args)
      : table_(static_cast<const AddedVectors&>(*args.weight)),
        input_(args.Input<T>(0)),
        output_(args.Output<T>()),
        tokens_(args.problem->output.batch),
        channels_(args.problem->output.channels),
        rows_(args.problem->input.batch),
        plane_(args.problem->input.plane()),
        before_(table_.length - plane_),
        has_panels_(args.problem->to.layout == Layout::kPanels),
        from_(args.problem->input.positions(), channels_, Layout::kPanels),
        to_(tokens_, channels_, args.problem->to.layout) {}

  int64_t units() const { return CeilDiv(tokens_, kPositionUnit); }

  // Tokens that share a unit of panels, whose spare positions become zeros.
  void Unit(int64_t unit) const {
    const int64_t first = unit * kPositionUnit;
    const TokenRun run = to_.RunAt(first);
    const int64_t last = std::min(first + kPositionUnit, tokens_);
    for (int64_t token = first; token < last;) {
      const Piece piece = PieceAt(token, last - token);
      Add(piece, run, output_ + run.offset + (token - first) * run.token_stride);
      token += piece.count;
    }
    for (int64_t spare = last - first; has_panels_ && spare < kPositionUnit; ++spare) {
      for (int64_t c = 0; c < channels_; ++c) output_[run.offset + c * run.channel_stride + spare] = T{};
    }
  }

 private:
  Piece PieceAt(int64_t token, int64_t most) const {
    const int64_t row = token / table_.length, place = token % table_.length;
    if (place < before_) return {place, std::min(most, before_ - place)};
    if (row >= rows_) return {place, std::min(most, table_.length - place)};
    const int64_t position = place - before_;
    const int64_t left = std::min(most, plane_ - position);
    if (!has_panels_) return {place, left, true, row * channels_ * plane_ + position, plane_};
    const TokenRun from = from_.RunAt(row * plane_ + position);
    return {place, std::min(left, from.tokens), true, from.offset, from.channel_stride};
  }

  void Add(const Piece& piece, const TokenRun& run, T* to) const {
    const float* added = table_.values.data() + piece.place;
    const T* from = input_ + piece.from;
    for (int64_t c = 0; c < channels_; ++c, to += run.channel_stride, added += table_.length) {
      for (int64_t i = 0; i < piece.count; ++i) {
        const float position = piece.has_positions ? FloatOf(from[i]) : 0.0f;
        StoreFloat(position + added[i], to + i * run.token_stride);
      }
      from += piece.channel_stride;
    }
  }

  const AddedVectors& table_;
  const T* const input_;
  T* const output_;
  const int64_t tokens_, channels_, rows_, plane_;
  const int64_t before_;  // tokens of a sequence that have no position
  const bool has_panels_;
  const TokenMatrix from_, to_;
};

template <typename T>
void RunUnits(const KernelArgs& args, Stream& stream) {
  const Run<T> run(args);
  CpuStream::From(stream).ParallelRanges(run.units(), [&](int64_t, int64_t first, int64_t last) {
    for (; first < last; ++first) run.Unit(first);
  });
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PreparePlaneTokens(const Weight& weight, const Problem&) {
  return std::make_unique<AddedVectors>(weight.ToDense());
}

void PlaneTokens(const KernelArgs& args, Stream& stream) {
  IsBfloat16(args.problem->to) ? RunUnits<Bfloat16>(args, stream) : RunUnits<float>(args, stream);
}

}  // namespace swizzle::cpu
