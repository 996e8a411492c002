// Sparse attention on a GPU: SDDMM, sparse softmax, attention in three parts and fused, beside cuSPARSE and memory
// copies.
//
//   cuda_attention_bench [--tokens N] [--heads N] [--rounds N] [--leasts N,...] [-o json]
//
// Patterns: `seed`, Sputnik's sparse Transformer (causal band of 256 and 5 % of the rest, drawn); `blocks`, causal
// blocks of 128 of the same density, drawn; `band`, the band alone. Every result is compared with the double-precision
// reference on drawn rows before it is timed. Times are medians over the rounds after warm-up, by events, with the
// second cache as the last run left it (the operands are larger). cuSPARSE's design is its SDDMM and SpMM, head by
// head, and our softmax between them. dense_attention.py beside this times dense attention. With -o json, JSON lines on
// stdout, the table on stderr.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cusparse.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cuda/attention/attention_pattern.h"
#include "kernels/cuda/attention/block_attention.h"
#include "kernels/cuda/attention/sddmm_tiles.h"
#include "kernels/cuda/attention/sparse_attention.h"
#include "kernels/cuda/attention/sparse_softmax.h"
#include "kernels/format/attention_pattern.h"
#include "kernels/reference/sparse_attention.h"

namespace swizzle::cuda {
namespace {

uint16_t HalfBits(float value) { return static_cast<__half_raw>(__float2half(value)).x; }

struct Options {
  int tokens = 12288;
  int heads = 8;
  int rounds = 15;
  std::vector<int64_t> leasts;
  std::string output;
};

// Fails the program: what was asked for can't be measured.
void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

double MedianMicroseconds(cudaStream_t queue, int rounds, const std::function<void()>& run) {
  cudaEvent_t start, stop;
  Check(cudaEventCreate(&start), "make an event");
  Check(cudaEventCreate(&stop), "make an event");
  std::vector<float> times(rounds);
  for (int i = -2; i < rounds; ++i) {
    Check(cudaEventRecord(start, queue), "time");
    run();
    Check(cudaEventRecord(stop, queue), "time");
    Check(cudaEventSynchronize(stop), "run");
    if (i >= 0) Check(cudaEventElapsedTime(&times[i], start, stop), "time");
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return 1000.0 * times[rounds / 2];
}

// q, k, v and the output of all heads, [heads][tokens][head dim].
struct Operands {
  DType dtype;
  int tokens, heads, head_dim;
  std::vector<float> host[3];
  DeviceArray<std::byte> device[4];

  Operands(DType type, const Options& options, int dim)
      : dtype(type), tokens(options.tokens), heads(options.heads), head_dim(dim) {
    uint64_t state = 1;
    for (int i = 0; i < 3; ++i) {
      host[i].resize(int64_t{heads} * tokens * head_dim);
      std::vector<uint16_t> halves(dtype == DType::kFloat16 ? host[i].size() : 0);
      for (size_t at = 0; at < host[i].size(); ++at) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float value = (static_cast<float>(state >> 40) * 0x1p-23f - 1) * 1.732f;  // of variance 1
        if (i == 0) value *= 2;
        if (!halves.empty()) value = FloatOfHalf(halves[at] = HalfBits(value));
        host[i][at] = value;
      }
      device[i] = halves.empty() ? *DeviceArray<std::byte>::Upload(std::as_bytes(std::span(host[i])))
                                 : *DeviceArray<std::byte>::Upload(std::as_bytes(std::span(halves)));
    }
    device[3] = *DeviceArray<std::byte>::Allocate(device[0].size());
  }

  SparseAttentionArgs Args() {
    const int64_t stride = int64_t{tokens} * head_dim;
    return {.dtype = dtype,
            .queries = {device[0].data(), head_dim, stride},
            .keys = {device[1].data(), head_dim, stride},
            .values = {device[2].data(), head_dim, stride},
            .output = {device[3].data(), head_dim, stride},
            .heads = heads,
            .head_dim = head_dim,
            .scale = 1 / std::sqrt(static_cast<float>(head_dim))};
  }
  void* HeadOf(int operand, int head) {
    return device[operand].data() + int64_t{head} * tokens * head_dim * ElementBytes(dtype);
  }
  void Poison() { Check(cudaMemset(device[3].data(), 0xFF, device[3].size()), "poison"); }

  // The relative error of drawn rows of the last head.
  double Error(const AttentionPattern& pattern) {
    const auto of_head = [&](int i) {
      return std::vector<float>(host[i].end() - int64_t{tokens} * head_dim, host[i].end());
    };
    const auto q = of_head(0), k = of_head(1), v = of_head(2);
    double error = 0, norm = 0;
    std::mt19937 random(2);
    std::vector<std::byte> row(head_dim * ElementBytes(dtype));
    for (int i = 0; i < 48; ++i) {
      const int64_t query = i == 0 ? tokens - 1 : random() % tokens;
      const auto truth = reference::SparseAttentionRow(pattern, head_dim, Args().scale, {q, k, v}, query);
      const auto* from = static_cast<const std::byte*>(HeadOf(3, heads - 1)) + query * row.size();
      Check(cudaMemcpy(row.data(), from, row.size(), cudaMemcpyDeviceToHost), "read the output");
      for (int d = 0; d < head_dim; ++d) {
        const double value = dtype == DType::kFloat32 ? reinterpret_cast<const float*>(row.data())[d]
                                                      : FloatOfHalf(reinterpret_cast<const uint16_t*>(row.data())[d]);
        error += (value - truth[d]) * (value - truth[d]);
        norm += truth[d] * truth[d];
      }
    }
    return std::sqrt(error / norm);
  }
};

// cuSPARSE's SDDMM and SpMM of one pattern, head by head. `ok` is false where it refuses.
class CusparseAttention {
 public:
  CusparseAttention(Operands& operands, const DeviceAttentionPattern& pattern, std::byte* values, cudaStream_t queue)
      : operands_(operands), pattern_(pattern), values_(values), type_(Type(operands.dtype)) {
    Note(cusparseCreate(&handle_));
    Note(cusparseSetStream(handle_, queue));
    for (int head = 0; ok && head < operands.heads; ++head) Make(head);
  }
  ~CusparseAttention() {
    for (const Head& head : heads_) {
      cusparseDestroySpMat(head.scores);
      for (cusparseDnMatDescr_t matrix : {head.q, head.k, head.v, head.y}) cusparseDestroyDnMat(matrix);
    }
    cusparseDestroy(handle_);
  }

  void Sddmm() {
    for (Head& h : heads_) {
      Note(cusparseSDDMM(handle_, kSame, kSame, &one_, h.q, h.k, &zero_, h.scores, CUDA_R_32F,
                         CUSPARSE_SDDMM_ALG_DEFAULT, h.buffers[0].data()));
    }
  }
  void Spmm() {
    for (Head& h : heads_) {
      Note(cusparseSpMM(handle_, kSame, kSame, &one_, h.scores, h.v, &zero_, h.y, CUDA_R_32F, kSpmm,
                        h.buffers[1].data()));
    }
  }

  bool ok = true;

 private:
  struct Head {
    cusparseSpMatDescr_t scores;
    cusparseDnMatDescr_t q, k, v, y;
    DeviceArray<std::byte> buffers[2];
  };
  static constexpr auto kSame = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr auto kSpmm = CUSPARSE_SPMM_CSR_ALG2;

  static cudaDataType Type(DType dtype) { return dtype == DType::kFloat32 ? CUDA_R_32F : CUDA_R_16F; }
  void Note(cusparseStatus_t status) {
    if (ok && status != CUSPARSE_STATUS_SUCCESS) std::fprintf(stderr, "cuSPARSE: %s\n", cusparseGetErrorString(status));
    ok = ok && status == CUSPARSE_STATUS_SUCCESS;
  }

  void Make(int head) {
    Head h{};
    const int64_t n = operands_.tokens, d = operands_.head_dim;
    Note(cusparseCreateCsr(&h.scores, n, n, pattern_.nnz(), const_cast<uint32_t*>(pattern_.row_offsets()),
                           const_cast<uint32_t*>(pattern_.col_indices()),
                           values_ + head * pattern_.value_stride() * ElementBytes(operands_.dtype), CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type_));
    Note(cusparseCreateDnMat(&h.q, n, d, d, operands_.HeadOf(0, head), type_, CUSPARSE_ORDER_ROW));
    Note(cusparseCreateDnMat(&h.k, d, n, d, operands_.HeadOf(1, head), type_, CUSPARSE_ORDER_COL));
    Note(cusparseCreateDnMat(&h.v, n, d, d, operands_.HeadOf(2, head), type_, CUSPARSE_ORDER_ROW));
    Note(cusparseCreateDnMat(&h.y, n, d, d, operands_.HeadOf(3, head), type_, CUSPARSE_ORDER_ROW));
    size_t bytes[2] = {};
    Note(cusparseSDDMM_bufferSize(handle_, kSame, kSame, &one_, h.q, h.k, &zero_, h.scores, CUDA_R_32F,
                                  CUSPARSE_SDDMM_ALG_DEFAULT, &bytes[0]));
    Note(cusparseSpMM_bufferSize(handle_, kSame, kSame, &one_, h.scores, h.v, &zero_, h.y, CUDA_R_32F, kSpmm,
                                 &bytes[1]));
    for (int i = 0; i < 2; ++i) h.buffers[i] = *DeviceArray<std::byte>::Allocate(std::max<size_t>(bytes[i], 16));
    Note(cusparseSDDMM_preprocess(handle_, kSame, kSame, &one_, h.q, h.k, &zero_, h.scores, CUDA_R_32F,
                                  CUSPARSE_SDDMM_ALG_DEFAULT, h.buffers[0].data()));
    Note(cusparseSpMM_preprocess(handle_, kSame, kSame, &one_, h.scores, h.v, &zero_, h.y, CUDA_R_32F, kSpmm,
                                 h.buffers[1].data()));
    heads_.push_back(std::move(h));
  }

  Operands& operands_;
  const DeviceAttentionPattern& pattern_;
  std::byte* const values_;
  const cudaDataType type_;
  cusparseHandle_t handle_ = nullptr;
  std::vector<Head> heads_;
  const float one_ = 1, zero_ = 0;
};

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void Row(const std::string& row, const std::string& pattern, const Operands& operands, double us, double error) {
    const char* dtype = operands.dtype == DType::kFloat32 ? "f32" : "f16";
    std::fprintf(json_ ? stderr : stdout, "%-16s %-6s %s d%-3d %9.1f us  error %.1e\n", row.c_str(), pattern.c_str(),
                 dtype, operands.head_dim, us, error);
    if (!json_) return;
    std::printf("{\"row\":\"%s\",\"pattern\":\"%s\",\"dtype\":\"%s\",\"head_dim\":%d,\"us\":%.1f,\"error\":%.2e}\n",
                row.c_str(), pattern.c_str(), dtype, operands.head_dim, us, error);
  }
  void Memory(const std::string& pattern, int64_t tokens, int64_t nnz, size_t csr, size_t tiles_f16, size_t tiles_f32) {
    std::fprintf(json_ ? stderr : stdout,
                 "memory %-6s %6ld tokens %8ld nonzeros: CSR %.2f MB, tiles f16 %.2f f32 %.2f MB; "
                 "bytes a nonzero %.2f %.2f %.2f\n",
                 pattern.c_str(), tokens, nnz, csr * 1e-6, tiles_f16 * 1e-6, tiles_f32 * 1e-6, csr * 1.0 / nnz,
                 tiles_f16 * 1.0 / nnz, tiles_f32 * 1.0 / nnz);
    if (!json_) return;
    std::printf(
        "{\"row\":\"memory\",\"pattern\":\"%s\",\"tokens\":%ld,\"nonzeros\":%ld,\"csr_bytes\":%zu,"
        "\"tiles_f16_bytes\":%zu,\"tiles_f32_bytes\":%zu}\n",
        pattern.c_str(), tokens, nnz, csr, tiles_f16, tiles_f32);
  }

 private:
  const bool json_;
};

struct NamedPattern {
  std::string name;
  AttentionPattern pattern;
  AttentionStructure structure;
};

NamedPattern Name(std::string name, AttentionPattern pattern) {
  const AttentionStructure structure = DetectAttentionStructure(pattern);
  return {std::move(name), std::move(pattern), structure};
}

// All diagonal blocks and drawn ones below them, to the density of `nnz`.
AttentionPattern DrawBlocks(int64_t tokens, int64_t nnz) {
  constexpr int64_t kBlock = 128;
  std::vector<AttentionPattern::Block> blocks, below;
  const int64_t side = tokens / kBlock;
  for (int64_t i = 0; i < side; ++i) {
    blocks.push_back({i, i});
    for (int64_t j = 0; j < i; ++j) below.push_back({i, j});
  }
  std::shuffle(below.begin(), below.end(), std::mt19937(3));
  const auto more = std::clamp<int64_t>((nnz + kBlock * kBlock / 2) / (kBlock * kBlock) - side, 0, below.size());
  blocks.insert(blocks.end(), below.begin(), below.begin() + more);
  return AttentionPattern::FromBlocks(tokens, kBlock, std::move(blocks));
}

void TimeFused(Operands& operands, const NamedPattern& named, const Options& options, cudaStream_t queue,
               Report& report) {
  const AttentionTileShape shape = FusedTileShape(operands.dtype, operands.head_dim, named.structure);
  const auto tiles = *DeviceAttentionTiles::Make(AttentionTiles::Cut(named.pattern, shape));
  const SparseAttentionArgs args = operands.Args();
  auto workspace = *DeviceArray<std::byte>::Allocate(FusedWorkspaceBytes(args, operands.tokens));
  const auto run = [&] { FusedSparseAttention(args, tiles, {workspace.data(), workspace.size()}, queue); };
  operands.Poison();
  run();
  Check(cudaStreamSynchronize(queue), "fused attention");
  const double error = operands.Error(named.pattern);
  const double us = MedianMicroseconds(queue, options.rounds, run);
  report.Row("fused", named.name, operands, us, error);
}

void TimeBlocks(Operands& operands, const NamedPattern& named, const Options& options, cudaStream_t queue,
                Report& report) {
  if (!AttentionBlocks::Fit(named.pattern)) return;
  const auto blocks = *AttentionBlocks::Make(named.pattern);
  const SparseAttentionArgs args = operands.Args();
  cudaDeviceProp device;
  Check(cudaGetDeviceProperties(&device, 0), "ask for the device");
  const auto run = [&] { QueueBlockAttention(args, blocks, 1, device.multiProcessorCount, queue); };
  operands.Poison();
  run();
  Check(cudaStreamSynchronize(queue), "attention by blocks");
  const double error = operands.Error(named.pattern);
  report.Row("blocks", named.name, operands, MedianMicroseconds(queue, options.rounds, run), error);
}

void TimeParts(Operands& operands, const NamedPattern& named, const Options& options, cudaStream_t queue,
               Report& report) {
  const auto pattern = *DeviceAttentionPattern::Make(named.pattern);
  const SparseAttentionArgs args = operands.Args();
  const auto tiles = *DeviceSddmmTiles::MakeBest(named.pattern, args.dtype, args.heads);
  auto workspace =
      *DeviceArray<std::byte>::Allocate(SparseAttentionWorkspaceBytes(args, pattern.tokens(), pattern.nnz()));
  auto copy = *DeviceArray<std::byte>::Allocate(workspace.size());
  const auto time = [&](const char* row, double error, const std::function<void()>& run) {
    report.Row(row, named.name, operands, MedianMicroseconds(queue, options.rounds, run), error);
  };
  const auto softmax = [&] {
    SparseSoftmax({args.dtype, workspace.data(), copy.data(), args.heads, args.scale}, pattern, queue);
  };
  operands.Poison();
  SparseAttentionInParts(args, pattern, tiles, {workspace.data(), workspace.size()}, queue);
  Check(cudaStreamSynchronize(queue), "attention in parts");
  const double error = operands.Error(named.pattern);
  const SddmmArgs product{args.dtype, args.queries, args.keys, args.heads, args.head_dim, workspace.data()};
  const size_t split = SddmmWorkspaceBytes(args.dtype, args.head_dim, args.heads, pattern.tokens());
  const std::span<std::byte> rest(workspace.data() + workspace.size() - split, split);
  for (const int64_t least : options.leasts) {
    const auto cut = *DeviceSddmmTiles::Make(SddmmTiles::Cut(named.pattern, least));
    time(("sddmm_" + std::to_string(least)).c_str(), 0, [&] { SddmmByTiles(product, pattern, cut, rest, queue); });
  }
  time("sddmm_rows", 0, [&] { Sddmm(product, pattern, queue); });
  time("sddmm", error, [&] { SddmmByTiles(product, pattern, tiles, rest, queue); });
  time("softmax", error, softmax);
  time("copy", 0,
       [&] { cudaMemcpyAsync(copy.data(), workspace.data(), copy.size(), cudaMemcpyDeviceToDevice, queue); });
  softmax();
  time("spmm", error, [&] { PatternSpmm(args, pattern, copy.data(), queue); });
  time("parts", error, [&] {
    SparseAttentionInParts(args, pattern, tiles, {workspace.data(), workspace.size()}, queue);
  });

  CusparseAttention cusparse(operands, pattern, workspace.data(), queue);
  const auto in_place = [&] {
    SparseSoftmax({args.dtype, workspace.data(), workspace.data(), args.heads, args.scale}, pattern, queue);
  };
  const auto all = [&] {
    cusparse.Sddmm();
    in_place();
    cusparse.Spmm();
  };
  operands.Poison();
  if (cusparse.ok) all();
  if (!cusparse.ok) return;
  Check(cudaStreamSynchronize(queue), "cuSPARSE");
  const double cusparse_error = operands.Error(named.pattern);
  time("cusparse_sddmm", cusparse_error, [&] { cusparse.Sddmm(); });
  in_place();
  time("cusparse_spmm", cusparse_error, [&] { cusparse.Spmm(); });
  time("cusparse_parts", cusparse_error, all);
}

void ReportMemory(const std::string& name, const AttentionPattern& pattern, Report& report) {
  const auto bytes = [&](DType dtype) {
    return AttentionTiles::Cut(pattern, FusedTileShape(dtype, 128, DetectAttentionStructure(pattern))).bytes();
  };
  report.Memory(name, pattern.tokens, pattern.nnz(), pattern.bytes(), bytes(DType::kFloat16), bytes(DType::kFloat32));
}

int Main(const Options& options) {
  Report report(options.output == "json");
  cudaStream_t queue;
  Check(cudaStreamCreate(&queue), "make a stream");
  std::vector<NamedPattern> patterns;
  patterns.push_back(Name("seed", AttentionPattern::FromBandAndRandom(options.tokens, 256, 0.05, 1)));
  patterns.push_back(Name("blocks", DrawBlocks(options.tokens, patterns[0].pattern.nnz())));
  patterns.push_back(Name("band", AttentionPattern::FromBand(options.tokens, 256, true)));
  for (const NamedPattern& named : patterns) ReportMemory(named.name, named.pattern, report);
  for (const int tokens : {options.tokens / 2, options.tokens / 4}) {
    ReportMemory("seed", AttentionPattern::FromBandAndRandom(tokens, 256, 0.05, 1), report);
  }
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    for (const int head_dim : {64, 128}) {
      Operands operands(dtype, options, head_dim);
      for (const NamedPattern& named : patterns) {
        TimeFused(operands, named, options, queue, report);
        if (dtype == DType::kFloat16) TimeBlocks(operands, named, options, queue, report);
      }
      TimeParts(operands, patterns[0], options, queue, report);
    }
  }
  return 0;
}

}  // namespace
}  // namespace swizzle::cuda

int main(int argc, char** argv) {
  swizzle::cuda::Options options;
  CLI::App app("Times sparse attention on a GPU");
  app.add_option("--tokens", options.tokens, "Tokens, a multiple of 128");
  app.add_option("--heads", options.heads, "Heads");
  app.add_option("--rounds", options.rounds, "Timed runs of each row");
  app.add_option("--leasts", options.leasts, "SDDMM by tiles of at least so many nonzeros, too")->delimiter(',');
  app.add_option("-o", options.output, "json: JSON lines on stdout");
  CLI11_PARSE(app, argc, argv);
  return swizzle::cuda::Main(options);
}
