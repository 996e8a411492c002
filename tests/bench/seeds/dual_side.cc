// The workloads of "Dual-side Sparse Tensor Core" (Wang et al., ISCA21) on this GPU, FP16: unfolding by bitmaps,
// products that are sparse on both sides, and convolutions whose input is sparse, too.
//
//   seeds_dual_side [--size=4096] [--batch=8] [-o dual_side.json]
//
// The paper's products ran on a simulated chip with instructions of its own. Beside what is measured stands "model":
// how many of its steps (of 8 x 16 outer products, 8 a k of a 32 x 32 tile) such zeros would skip. Ours counts encoding
// X. What the layer before encodes as it leaves is timed beside it: products that encode Y, beside ones that store it
// first, and convolutions that find X encoded and leave so, as in the middle of a network. cuSPARSE is the better of
// CSR times dense and CSR times CSR (FP32), the latter from 98 % on.
#include <cmath>
#include <random>

#include "kernels/cuda/conv/bitmap/bitmap_planes.h"
#include "kernels/cuda/conv/bitmap/bitmap_product.h"
#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/runtime/queue.h"
#include "tests/bench/cuda/dense_product.h"
#include "tests/bench/cuda/spmm_race.h"
#include "tests/bench/seeds/claims.h"
#include "tests/bench/seeds/sparse_by_sparse.h"

namespace swizzle::bench {
namespace {

constexpr DType kF16 = DType::kFloat16;
constexpr cuda::BitmapTile kTiles[] = {cuda::BitmapTile::k64, cuda::BitmapTile::k128};

struct Options {
  SeedRun run = {.system = "Dual-side", .paper = "Wang et al., ISCA21"};
  int64_t size = 4096, batch = 8;
};

// Expected steps of a k that are left: of the columns that hold a of 32, a / 8 rounded up; of the rows, b / 16.
double ModelSteps(double sparsity, int rows_of_step) {
  double sum = 0, chance = std::pow(sparsity, 32);  // of no nonzero
  const double odds = (1 - sparsity) / std::max(sparsity, 1e-12);
  if (sparsity == 0) return 32.0 / rows_of_step;
  for (int count = 1; count <= 32; ++count) {
    chance *= odds * (33 - count) / count;
    sum += chance * ((count + rows_of_step - 1) / rows_of_step);
  }
  return sum;
}
double ModelGain(double w_sparsity, double x_sparsity) {
  return 8 / (ModelSteps(w_sparsity, 8) * ModelSteps(x_sparsity, 16));
}

std::vector<uint16_t> DrawHalves(int64_t count, double sparsity) {
  std::mt19937 random(8);
  std::bernoulli_distribution is_kept(1 - sparsity);
  std::vector<uint16_t> halves(count);
  for (uint16_t& half : halves) half = is_kept(random) ? static_cast<uint16_t>(0x3000 | (random() & 0x83FF)) : 0;
  return halves;
}

struct Layer {
  const char* model;
  int64_t channels, size, filters;
};
constexpr Layer kLayers[] = {{"ResNet-18", 64, 56, 64},  {"ResNet-18", 128, 28, 128}, {"ResNet-18", 256, 14, 256},
                             {"ResNet-18", 512, 7, 512}, {"VGG-16", 128, 112, 128},   {"VGG-16", 256, 56, 256},
                             {"VGG-16", 512, 28, 512}};

Problem ProblemOf(const Layer& layer, int64_t batch) {
  Problem problem;
  problem.input = {batch, layer.channels, layer.size, layer.size};
  problem.output = {batch, layer.filters, layer.size, layer.size};
  problem.attributes =
      Window{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  problem.from = problem.to = {Layout::kRows, kF16};
  return problem;
}

class Bench {
 public:
  Bench(const Options& options, SeedReport& report)
      : options_(options), report_(report), dense_timer_(options.run.kept.launches, options.run.kept.rounds) {
    auto backend = NewCudaBackend(0);
    Must(backend.ok(), "open the GPU");
    backend_ = *std::move(backend);
    stream_ = *backend_->NewStream(0);
    timer_ = std::make_unique<Timer>(options.run.kept.launches, options.run.kept.rounds, cuda::QueueOf(*stream_));
    Must(cusparseCreate(&cusparse_) == CUSPARSE_STATUS_SUCCESS, "start cuSPARSE");
  }

  // Encoding and unfolding, against unfolding what is dense.
  void RunUnfolding(int64_t batch) {
    const Problem problem = ProblemOf({"ResNet-18", 128, 56, 128}, batch);
    const int64_t stride = RowStride(problem.input.positions());
    auto columns = *cuda::DeviceArray<uint16_t>::Allocate(problem.input.channels * problem.window().taps() * stride);
    for (const double sparsity : {0.0, .25, .5, .75, .99, .999}) {
      const auto input = *cuda::DeviceArray<uint16_t>::Upload(DrawHalves(problem.input.channels * stride, sparsity));
      const auto planes = *cuda::BitmapPlanes::Make(problem);
      const double dense = timer_->Time([&] {
        cuda::GatherColumns(problem, {input.data(), problem.to.dtype}, {0, stride, columns.data()}, *stream_);
      });
      const double encode = timer_->Time([&] { planes->QueueEncode(input.data(), timer_->queue()); });
      const double unfold = timer_->Time([&] { planes->QueueUnfold(timer_->queue()); });
      report_.AddCase("unfolding", {{"batch", batch},
                                    {"sparsity", sparsity},
                                    {"dense_us", dense},
                                    {"encode_us", encode},
                                    {"unfold_us", unfold},
                                    {"ours_us", encode + unfold}});
    }
  }

  void RunProduct(double w_sparsity, double x_sparsity) {
    const int64_t size = options_.size;
    const CsrMatrix w = DrawMatrix(size, size, w_sparsity, 0);
    Product product(w, size, kF16, x_sparsity);
    const DenseMatrix dense = w.ToDense();
    if (dense_us_ == 0) dense_us_ = TimeDense(dense, product, dense_timer_).warm;
    const auto weight = *cuda::BitmapStrips::Make(BitmapMatrix::FromDense(dense), {}, kF16);
    const auto encoded = *cuda::BitmapActivations::Make(size, CeilDiv(size, int64_t{cuda::kStripLanes}));
    const cudaStream_t queue = timer_->queue();
    const auto encode = [&] { cuda::QueueEncode(product.x(), size, size, product.stride(), *encoded, queue); };
    encode();
    const cuda::BitmapView sparse = encoded->view();
    const auto time = [&](const cuda::BitmapView* x) {
      double least = 1e30;
      for (const cuda::BitmapTile tile : kTiles) {
        const auto work = [&] {
          cuda::QueueBitmapProduct({.weight = weight.get(),
                                    .dtype = kF16,
                                    .sparse = x,
                                    .x = product.x(),
                                    .residual = nullptr,
                                    .y = product.y(),
                                    .stride = product.stride(),
                                    .columns = size},
                                   tile, queue);
        };
        const double error = product.Error(work, queue);
        if (!(error <= 4e-3)) report_.MarkWrong(Concat("product off by ", error));
        least = std::min(least, timer_->Time(work));
      }
      return least;
    };
    const double encode_us = timer_->Time(encode), both_us = time(&sparse), w_only_us = time(nullptr);
    double cusparse_us = 1e30;
    if (w_sparsity >= .7) {
      const DeviceCsr csr(w, kF16);
      cusparse_us = TimeCusparse(cusparse_, product, csr, *timer_).us;
    }
    nlohmann::ordered_json facts = {{"size", size},
                                    {"w_sparsity", w_sparsity},
                                    {"x_sparsity", x_sparsity},
                                    {"cublas_us", dense_us_},
                                    {"encode_us", encode_us},
                                    {"product_us", both_us},
                                    {"ours_us", encode_us + both_us},
                                    {"w_only_us", w_only_us},
                                    {"stored_then_encoded_us", TimeNext(*weight, sparse, product, false)},
                                    {"leaves_encoded_us", TimeNext(*weight, sparse, product, true)},
                                    {"model_gain", ModelGain(w_sparsity, x_sparsity)}};
    if (w_sparsity >= .98 && x_sparsity >= .98) {
      facts["cusparse_spgemm_us"] = TimeSparseBySparse(cusparse_, w, DrawMatrix(size, size, x_sparsity, 0), queue);
      cusparse_us = std::min(cusparse_us, facts["cusparse_spgemm_us"].get<double>());
    }
    if (cusparse_us < 1e30) facts["cusparse_us"] = cusparse_us;
    report_.AddCase("product", facts);
  }

  void RunConvolutions(const Layer& layer) {
    const Problem problem = ProblemOf(layer, options_.batch);
    const int64_t cols = layer.channels * 9, stride = RowStride(problem.output.positions());
    const DenseMatrix w = DrawMatrix(layer.filters, cols, .9, 0).ToDense();
    const double dense_us = TimeDenseConvolution(problem, w);
    const auto weight = *cuda::BitmapStrips::Make(BitmapMatrix::FromDense(w), {}, kF16);
    auto output = *cuda::DeviceArray<uint16_t>::Allocate(layer.filters * stride);
    for (const double sparsity : {0.0, .5, .75, .9, .97, .99}) {
      const auto input = *cuda::DeviceArray<uint16_t>::Upload(DrawHalves(layer.channels * stride, sparsity));
      const auto planes = *cuda::BitmapPlanes::Make(problem);
      const cuda::BitmapView columns = planes->columns();
      const auto next = *cuda::BitmapPlanes::Make(problem);  // of the same kind
      double least = 1e30, least_encoded = 1e30;
      for (const cuda::BitmapTile tile : kTiles) {
        cuda::BitmapProduct product = {.weight = weight.get(),
                                       .dtype = kF16,
                                       .sparse = &columns,
                                       .x = nullptr,
                                       .residual = nullptr,
                                       .y = output.data(),
                                       .stride = stride,
                                       .columns = problem.output.positions(),
                                       .epilogue = {.low = 0}};
        least = std::min(least, timer_->Time([&] {
          planes->QueueEncode(input.data(), timer_->queue());
          planes->QueueUnfold(timer_->queue());
          cuda::QueueBitmapProduct(product, tile, timer_->queue());
        }));
        if (!cuda::LeavesAsPlanes(layer.size, tile)) continue;
        product.y = nullptr, product.planes = next->target();
        least_encoded = std::min(least_encoded, timer_->Time([&] {
          planes->QueueUnfold(timer_->queue());
          cuda::QueueBitmapProduct(product, tile, timer_->queue());
        }));
      }
      report_.AddCase("convolution", {{"model", layer.model},
                                      {"channels", layer.channels},
                                      {"plane", layer.size},
                                      {"batch", options_.batch},
                                      {"w_sparsity", .9},
                                      {"x_sparsity", sparsity},
                                      {"dense_us", dense_us},
                                      {"ours_us", least},
                                      {"leaves_encoded_us", least_encoded},
                                      {"model_gain", ModelGain(.9, sparsity)}});
    }
  }

 private:
  // The product, clamped at 0, as the operand of another one: encoded where it leaves, or stored and then encoded.
  double TimeNext(const cuda::BitmapStrips& weight, const cuda::BitmapView& x, Product& product, bool leaves_encoded) {
    const int64_t size = options_.size;
    const auto next = *cuda::BitmapActivations::Make(size, CeilDiv(size, int64_t{cuda::kStripLanes}));
    double least = 1e30;
    for (const cuda::BitmapTile tile : kTiles) {
      least = std::min(least, timer_->Time([&] {
        cuda::QueueBitmapProduct({.weight = &weight,
                                  .dtype = kF16,
                                  .sparse = &x,
                                  .x = nullptr,
                                  .residual = nullptr,
                                  .y = leaves_encoded ? nullptr : product.y(),
                                  .encoded = leaves_encoded ? next.get() : nullptr,
                                  .stride = product.stride(),
                                  .columns = size,
                                  .epilogue = {.low = 0}},
                                 tile, timer_->queue());
        if (!leaves_encoded) {
          cuda::QueueEncode(product.y(), size, size, product.stride(), *next, timer_->queue());
        }
      }));
    }
    return least;
  }

  // The fastest dense row of the kernel table in FP16.
  double TimeDenseConvolution(const Problem& asked, const DenseMatrix& w) {
    const Weight weight{.matrix = w, .bias = {}};
    double least = 1e30;
    for (const Kernel* kernel : Candidates(*backend_, asked, &weight, Precision::kFloat16)) {
      if (kernel->key.weights != Format::kDense || kernel->key.input.dtype != kF16) continue;
      const Problem problem = AsRowSolves(*kernel, asked);
      auto packed = backend_->Prepare(*kernel, weight, problem);
      Must(packed.ok(), "prepare a dense convolution");
      const auto input =
          *cuda::DeviceArray<uint16_t>::Upload(DrawHalves(LayoutElements(problem.input, problem.from.layout), 0));
      auto output = *cuda::DeviceArray<uint16_t>::Allocate(LayoutElements(problem.output, problem.to.layout));
      const size_t bytes = kernel->workspace_bytes == nullptr ? 0 : kernel->workspace_bytes(problem);
      auto workspace = *cuda::DeviceArray<std::byte>::Allocate(bytes);
      const Operand operand{.data = input.data(), .dtype = kF16};
      const KernelArgs args{.problem = &problem,
                            .weight = packed->get(),
                            .inputs = {&operand, 1},
                            .output = {.data = output.data(), .dtype = kF16},
                            .workspace = {workspace.data(), bytes}};
      stream_->Run([&] { kernel->run(args, *stream_); });
      Must(stream_->Synchronize().ok(), "run a dense convolution");
      least = std::min(least, timer_->Time([&] { kernel->run(args, *stream_); }));
    }
    return least;
  }

  const Options& options_;
  SeedReport& report_;
  BothTimer dense_timer_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Timer> timer_;
  cusparseHandle_t cusparse_;
  double dense_us_ = 0;
};

void AddClaims(SeedReport& report) {
  const auto add = [&](const char* what, double published, bool simulated, double ours, const char* of = "") {
    report.AddClaim({.what = what,
                     .published = published,
                     .hardware = simulated ? "V100" : "not stated",
                     .simulated = simulated,
                     .ours = ours,
                     .of = of});
  };
  const auto unfolding = [&](double sparsity) {
    return report.Ratio("unfolding", "dense_us", "ours_us",
                        [=](const auto& c) { return c["sparsity"] == sparsity && c["batch"] == 1; });
  };
  const auto product = [&](double w, double x, const char* of) {
    return report.Ratio("product", "cublas_us", of,
                        [=](const auto& c) { return c["w_sparsity"] == w && c["x_sparsity"] == x; });
  };
  add("unfolding by bitmaps over dense, no zeros", 1 / 8.31, false, unfolding(0));
  add("unfolding by bitmaps over dense, 75 % zeros", 1 / 2.5, false, unfolding(.75));
  add("unfolding by bitmaps over dense, 99 % zeros", 1 / 1.5, false, unfolding(.99));
  add("SpGEMM over dense, zeros 0 + 99 %", 13.4, true, product(0, .99, "ours_us"));
  add("SpGEMM over dense, zeros 99.9 + 99 %", 23, true, product(.999, .99, "ours_us"));
  add("SpGEMM over dense, zeros 70 + 70 %", 0, true, product(.7, .7, "ours_us"));
  add("SpGEMM over dense, zeros 90 + 90 %", 0, true, product(.9, .9, "ours_us"));
  add("SpGEMM over dense, zeros 99 + 99 %", 0, true, product(.99, .99, "ours_us"));
  add("cuSPARSE over dense, zeros 90 + 99 %", .57, true, product(.9, .99, "cusparse_us"), "cuSPARSE");
  add("cuSPARSE over dense, zeros 99.9 + 99 %", 1.67, true, product(.999, .99, "cusparse_us"), "cuSPARSE");
  const auto convolution = [&](double sparsity, const char* of) {
    return report.Ratio("convolution", "dense_us", of, [=](const auto& c) { return c["x_sparsity"] == sparsity; });
  };
  constexpr char kOf[] = "convolutions, weights and input sparse, over cuDNN";
  constexpr char kLeft[] = "encoded by the layer before";
  add(Concat(kOf, " (here: 90 + 75 %)").c_str(), 4.38, true, convolution(.75, "leaves_encoded_us"), kLeft);
  add(Concat(kOf, " (here: 90 + 75 %)").c_str(), 0, true, convolution(.75, "ours_us"), "encoded apart");
  add(Concat(kOf, " (here: 90 + 99 %)").c_str(), 0, true, convolution(.99, "leaves_encoded_us"), kLeft);
  add("products that leave encoded over storing, then encoding", 0, true,
      report.Ratio("product", "stored_then_encoded_us", "leaves_encoded_us"));
  add("convolutions that leave encoded over encoding apart", 0, true,
      report.Ratio("convolution", "ours_us", "leaves_encoded_us"));
}

int Main(const Options& options) {
  SeedReport report(options.run);
  Bench bench(options, report);
  bench.RunUnfolding(1);
  bench.RunUnfolding(options.batch);
  for (const auto& [w, x] : std::initializer_list<std::pair<double, double>>{
           {0, .99}, {.7, .7}, {.9, .9}, {.95, .95}, {.98, .98}, {.9, .99}, {.99, .99}, {.999, .99}, {.999, .999}}) {
    bench.RunProduct(w, x);
  }
  for (const Layer& layer : kLayers) bench.RunConvolutions(layer);
  AddClaims(report);
  return report.Finish();
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("Products and convolutions that are sparse on both sides, on this GPU, beside what their paper says");
  app.add_option("--size", options.size, "of square products");
  app.add_option("--batch", options.batch, "of convolutions");
  swizzle::bench::AddRunOptions(app, options.run.kept);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
