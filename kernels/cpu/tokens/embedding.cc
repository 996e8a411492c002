#include "kernels/cpu/tokens/embedding.h"

#include <cstring>

#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

// The table as the model has it. Immutable.
class EmbeddingTable final : public PackedWeight {
 public:
  explicit EmbeddingTable(const Weight& weight) : table(weight.ToDense()) {}
  size_t bytes() const override { return table.values.size() * sizeof(float); }

  const DenseMatrix table;
};

// The table row of `token`. ids: null where rows go by position.
int64_t RowOf(const KernelArgs& args, const int32_t* ids, int64_t token) {
  return ids == nullptr ? args.sequences->positions[token] + args.problem->lookup().offset : ids[token];
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareEmbedding(const Weight& weight, const Problem&) {
  return std::make_unique<EmbeddingTable>(weight);
}

void RunEmbedding(const KernelArgs& args, Stream& stream) {
  const DenseMatrix& table = static_cast<const EmbeddingTable&>(*args.weight).table;
  const int64_t channels = args.problem->output.channels;
  const int32_t* const ids = args.problem->lookup().by_position ? nullptr : args.Input<int32_t>(0);
  float* const output = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(args.problem->output.batch, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const float* row = table.values.data() + RowOf(args, ids, token) * channels;
      std::memcpy(output + token * channels, row, channels * sizeof(float));
    }
  });
}

}  // namespace swizzle::cpu
