// A plan that adds its inputs, with a runner that tells what it did: for tests of what runs plans. Single-threaded.
#ifndef SWIZZLE_TESTS_SERVER_MODEL_SUM_PLAN_H_
#define SWIZZLE_TESTS_SERVER_MODEL_SUM_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/fake_plan.h"

namespace swizzle {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(size_t bytes) : floats_(bytes / sizeof(float)) {}
  std::byte* data() override { return reinterpret_cast<std::byte*>(floats_.data()); }
  size_t bytes() const override { return floats_.size() * sizeof(float); }

 private:
  std::vector<float> floats_;
};

// Inputs a [2] and b [1], outputs sum = a + b [2] and twice = 2 * b [1], per row; no weights.
inline Network SumNetwork(int64_t batch_size) {
  Network network;
  network.batch_size = batch_size;
  const auto port = [&](std::string name, int64_t elements, int value) {
    NetworkPort result{std::move(name), DType::kFloat32, {elements}, value};
    if (batch_size > 0) result.dims.insert(result.dims.begin(), batch_size);
    return result;
  };
  network.inputs = {port("a", 2, 0), port("b", 1, 1)};
  network.outputs = {port("sum", 2, 2), port("twice", 1, 3)};
  return network;
}

// What runners of one plan have done.
struct RunLog {
  int copies = 0;
  std::vector<int64_t> runs;  // rows of each
};

struct SumRules {
  Status run_status;
  bool tail = false;
  bool has_sources = false;
};

class SumRunner final : public Runner {
 public:
  SumRunner(int64_t max_batch, const SumRules& rules, std::unique_ptr<HostStream> stream, RunLog& log)
      : max_batch_(max_batch),
        rules_(rules),
        stream_(std::move(stream)),
        log_(log),
        arena_(static_cast<size_t>(6 * max_batch)) {}

  std::span<float> Input(int i, BatchSize size) override {
    return i == 0 ? Part(0, 2, size.rows) : Part(2, 1, size.rows);
  }
  std::span<const float> Output(int i, BatchSize size) override {
    return i == 0 ? Part(3, 2, size.rows) : Part(5, 1, size.rows);
  }
  std::span<int32_t> Ids(int, BatchSize) override { return {}; }
  std::span<std::byte> InputMemory(int i, BatchSize size) override { return std::as_writable_bytes(Input(i, size)); }
  void WriteInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) override {
    stream_->Copy(std::as_writable_bytes(Input(i, size)).data() + offset, bytes.data(), bytes.size());
  }
  void CopyInput(int i, BatchSize size, size_t offset, std::span<const std::byte> bytes) override {
    WriteInput(i, size, offset, bytes);
    ++log_.copies;
  }
  Status Run(BatchSize size, const Sequences*) override {
    if (!rules_.run_status.ok()) return rules_.run_status;
    log_.runs.push_back(size.rows);
    Compute(size.rows, 0);
    return absl::OkStatus();
  }
  // Its outputs lie where those of a whole batch do.
  Status RunPart(BatchPart part) override {
    SWIZZLE_CHECK(rules_.tail && part.first == std::accumulate(log_.runs.begin(), log_.runs.end(), int64_t{0}));
    log_.runs.push_back(part.rows);
    Compute(part.rows, part.first);
    return absl::OkStatus();
  }

 private:
  // Of the rows of the inputs, to those of the outputs from `first` on.
  void Compute(int64_t batch, int64_t first) {
    const auto a = Input(0, batch), b = Input(1, batch);
    const auto sum = Part(3, 2, first + batch), twice = Part(5, 1, first + batch);
    for (size_t row = 0; row < static_cast<size_t>(batch); ++row) {
      const size_t to = row + static_cast<size_t>(first);
      sum[2 * to] = a[2 * row] + b[row];
      sum[2 * to + 1] = a[2 * row + 1] + b[row];
      twice[to] = 2 * b[row];
    }
  }

  // `columns` floats a row, after `first` floats a row of other parts.
  std::span<float> Part(int64_t first, int64_t columns, int64_t batch) {
    return {arena_.data() + first * max_batch_, static_cast<size_t>(columns * batch)};
  }

  const int64_t max_batch_;
  const SumRules& rules_;
  const std::unique_ptr<HostStream> stream_;
  RunLog& log_;
  std::vector<float> arena_;
};

class SumPlan final : public testing::FakePlan, public SumRules {
 public:
  SumPlan(int64_t batch_size, int64_t max_batch) : SumPlan(batch_size, max_batch, max_batch) {}
  SumPlan(int64_t batch_size, int64_t max_batch, int64_t micro_batch) : FakePlan(SumNetwork(batch_size), max_batch) {
    report_.micro_batch = micro_batch;
  }

  bool has_tail() const override { return tail; }
  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions& options) const override {
    static const std::unique_ptr<Backend> backend = NewCpuBackend();
    SWIZZLE_ASSIGN_OR_RETURN(auto stream, std::get<HostBackend*>(backend->kind())->NewHostStream(1));
    if (options.pinned_executor) stream->PinThreads(*options.pinned_executor);
    return std::make_unique<SumRunner>(max_batch_, *this, std::move(stream), log);
  }
  StatusOr<std::unique_ptr<Buffer>> AllocateSource(size_t bytes) const override {
    return has_sources ? std::make_unique<HostBuffer>(bytes) : nullptr;
  }

  mutable RunLog log;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_MODEL_SUM_PLAN_H_
