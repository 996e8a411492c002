#include "kernels/cpu/tokens/embedding.h"

#include <cstring>

#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

// The table as the model has it. Immutable.
class EmbeddingTable final : public PackedWeight {
 public:
  explicit EmbeddingTable(const Weight& weight) : table(weight.ToDense()) {}
  size_t bytes() const override { return table.bytes(); }

  const DenseMatrix table;
};

// The table row of `token`. Ids stand bit for bit in place of floats.
int64_t RowOf(const KernelArgs& args, int64_t token) {
  const Lookup& lookup = args.problem->lookup();
  if (lookup.by_position) return args.sequences->positions[token] + lookup.offset;
  int32_t id;
  std::memcpy(&id, args.inputs[0] + token, sizeof(id));
  return id;
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareEmbedding(const Weight& weight, const Problem&) {
  return std::make_unique<EmbeddingTable>(weight);
}

void RunEmbedding(const KernelArgs& args, Stream& stream) {
  const DenseMatrix& table = static_cast<const EmbeddingTable&>(*args.weight).table;
  const int64_t channels = args.problem->output.channels;
  CpuStream::From(stream).ParallelRanges(args.problem->output.batch, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const float* row = table.values.data() + RowOf(args, token) * channels;
      std::memcpy(args.output + token * channels, row, channels * sizeof(float));
    }
  });
}

}  // namespace swizzle::cpu
