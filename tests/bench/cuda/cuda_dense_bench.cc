// What a dense product gains by the choice among cuBLASLt's algorithms (kernels/cuda/runtime/cublas_matmul.h): the
// first of its heuristics beside the one that is chosen where kernels are timed. Products of the layers of BERT-base,
// MiniLM, ResNet-50 and MobileNetV1 as they lie in kNhwc, windows unfolded.
//
//   cuda_dense_bench [--types=f16,bf16,tf32,f16x3] [--batches=1,8,32] [--rounds=9] [-o results.json]
//
// Both in turn, as CudaStream::Time has it: weights come from memory, activations from the second cache. Medians.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include "kernels/cuda/runtime/cublas_matmul.h"
#include "kernels/cuda/runtime/device_array.h"
#include "tests/bench/cuda/contenders.h"
#include "tests/bench/cuda/kept_run.h"

namespace swizzle::bench {
namespace {

struct Options {
  std::vector<std::string> types = {"f16", "tf32", "f16x3"};
  std::vector<int64_t> batches = {1, 8, 32};
  KeptRun run = {.rounds = 9};
};

struct Shape {
  const char* model;
  int64_t rows, depth, positions;  // of a row of a batch
};
constexpr Shape kShapes[] = {
    {"bert-base", 2304, 768, 128},   {"bert-base", 768, 768, 128},    {"bert-base", 3072, 768, 128},
    {"bert-base", 768, 3072, 128},   {"minilm", 1152, 384, 128},      {"minilm", 384, 384, 128},
    {"minilm", 1536, 384, 128},      {"minilm", 384, 1536, 128},      {"resnet50", 64, 64, 3136},
    {"resnet50", 256, 64, 3136},     {"resnet50", 64, 256, 3136},     {"resnet50", 64, 576, 3136},
    {"resnet50", 512, 128, 784},     {"resnet50", 128, 512, 784},     {"resnet50", 128, 1152, 784},
    {"resnet50", 1024, 256, 196},    {"resnet50", 256, 1024, 196},    {"resnet50", 256, 2304, 196},
    {"resnet50", 2048, 512, 49},     {"resnet50", 512, 2048, 49},     {"resnet50", 512, 4608, 49},
    {"resnet50", 1000, 2048, 1},     {"mobilenet_v1", 64, 32, 12544}, {"mobilenet_v1", 128, 64, 3136},
    {"mobilenet_v1", 256, 256, 784}, {"mobilenet_v1", 512, 512, 196}, {"mobilenet_v1", 1024, 1024, 49}};

struct Type {
  const char* name;
  DType dtype;
  bool tf32;
  int64_t parts;  // how often the depth lies one after the other
};
constexpr Type kTypes[] = {{"f16", DType::kFloat16, false, 1},
                           {"bf16", DType::kBFloat16, false, 1},
                           {"tf32", DType::kFloat32, true, 1},
                           {"f32", DType::kFloat32, false, 1},
                           {"f16x3", DType::kFloat16, false, 3}};

struct Line {
  Shape shape;
  const char* type;
  int64_t batch;
  int place = 0;
  double first = 0, chosen = 0;
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    int l2_bytes = 0;
    for (cuda::Device* device : {&plain_, &choosing_}) {
      Must(cudaDeviceGetAttribute(&device->multiprocessors, cudaDevAttrMultiProcessorCount, 0), "ask the device");
      Must(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), "ask the device");
      device->l2_bytes = static_cast<size_t>(l2_bytes);
    }
    plain_stream_ = MakeStream(plain_), choosing_stream_ = MakeStream(choosing_);
  }

  // `shape` and `type` are of the lists above.
  void Run(const Shape& shape, const Type& type, int64_t batch) {
    cuda::Product product;
    product.dtype = type.dtype;
    product.tf32 = type.tf32;
    product.keeps_sums = type.parts > 1;
    product.m = shape.rows, product.n = shape.positions * batch, product.k = shape.depth * type.parts;
    const auto w = Draw(product.m * product.k, type.dtype), x = Draw(product.n * product.k, type.dtype);
    auto y = *cuda::DeviceArray<float>::Allocate(product.m * product.n);
    product.a = {w.data(), product.k, 0, /*is_weight=*/true};
    product.transpose_a = true;
    product.b = {x.data(), product.k};
    product.d = y.data(), product.ld_d = product.m;
    const std::span<const std::byte> recent[] = {{x.data(), x.size()}};
    const auto time = [&](cuda::CudaStream& stream) {
      const auto took = stream.Time([&] { stream.Report(cuda::QueueProduct(product, stream)); }, recent);
      Must(took.ok(), "time a product");
      return absl::ToDoubleMicroseconds(*took);
    };
    const auto known = choosing_.algorithms.All();
    time(*choosing_stream_);
    Line line{shape, type.name, batch};
    std::string text;
    for (const auto& [product_text, choice] : choosing_.algorithms.All()) {
      if (!known.contains(product_text)) text = product_text, line.place = choice.algorithm;
    }
    plain_.algorithms.Add(text, {0, 0});
    time(*plain_stream_);
    // On one stream: times of two were seen to differ by a microsecond.
    cublasLtMatmulAlgo_t& taken = choosing_stream_->algorithms()[text];
    const cublasLtMatmulAlgo_t its_choice = taken, its_first = plain_stream_->algorithms()[text];
    std::vector<double> first, chosen;
    for (int round = -1; round < options_.run.rounds; ++round) {
      taken = its_first;
      const double one = time(*choosing_stream_);
      taken = its_choice;
      const double other = time(*choosing_stream_);
      if (round >= 0) first.push_back(one), chosen.push_back(other);
    }
    line.first = Median(first), line.chosen = Median(chosen);
    lines_.push_back(line);
    std::printf("%-13s %-6s %3ld: %5ld x %5ld x %6ld | %8.2f %8.2f | %5.2f  place %d\n", shape.model, type.name,
                static_cast<long>(batch), static_cast<long>(product.m), static_cast<long>(product.k),
                static_cast<long>(product.n), line.first, line.chosen, line.first / line.chosen, line.place);
    std::fflush(stdout);
  }

  void Summarise() const {
    for (const Type& type : kTypes) {
      std::vector<double> gains;
      for (const Line& line : lines_) {
        if (line.type == type.name) gains.push_back(line.first / line.chosen);
      }
      if (gains.empty()) continue;
      double logs = 0;
      for (const double gain : gains) logs += std::log(gain);
      std::printf("%s: %zu products, median %.3f, mean %.3f, most %.2f\n", type.name, gains.size(), Median(gains),
                  std::exp(logs / static_cast<double>(gains.size())), *std::ranges::max_element(gains));
    }
  }

  void WriteJson() const {
    if (options_.run.output.empty()) return;
    std::ofstream out(options_.run.output);
    out.precision(5);
    out << "{\n  " << FactsOf(options_.run) << ",\n  \"products\": [\n";
    const char* comma = "";
    for (const Line& line : lines_) {
      out << std::exchange(comma, ",\n") << "    {\"model\": \"" << line.shape.model << "\", \"type\": \"" << line.type
          << "\", \"batch\": " << line.batch << ", \"m\": " << line.shape.rows << ", \"k\": " << line.shape.depth
          << ", \"n\": " << line.shape.positions * line.batch << ", \"first_us\": " << line.first
          << ", \"chosen_us\": " << line.chosen << ", \"place\": " << line.place << "}";
    }
    out << "\n  ]\n}\n";
  }

 private:
  static std::unique_ptr<cuda::CudaStream> MakeStream(cuda::Device& device) {
    auto stream = cuda::CudaStream::Make(device);
    Must(stream.ok(), "make a stream");
    return *std::move(stream);
  }

  // Normal numbers of either sign: bits are drawn, but for the exponents' highest.
  static cuda::DeviceArray<std::byte> Draw(int64_t count, DType dtype) {
    std::vector<std::byte> bytes(count * ElementBytes(dtype));
    const size_t size = ElementBytes(dtype);
    uint32_t state = 1;
    for (size_t i = 0; i < bytes.size(); ++i) {
      state = state * 1664525 + 1013904223;
      const uint32_t drawn = state >> 24;
      bytes[i] = static_cast<std::byte>(i % size == size - 1 ? (drawn & 0x83) | 0x38 : drawn);
    }
    return *cuda::DeviceArray<std::byte>::Upload(bytes);
  }

  const Options& options_;
  cuda::Device plain_, choosing_;
  std::unique_ptr<cuda::CudaStream> plain_stream_, choosing_stream_;
  std::vector<Line> lines_;
};

int Main(const Options& options) {
  Bench bench(options);
  for (const Type& type : kTypes) {
    if (std::ranges::find(options.types, type.name) == options.types.end()) continue;
    for (const Shape& shape : kShapes) {
      for (const int64_t batch : options.batches) bench.Run(shape, type, batch);
    }
  }
  bench.Summarise();
  bench.WriteJson();
  return 0;
}

}  // namespace
}  // namespace swizzle::bench

int main(int argc, char** argv) {
  swizzle::bench::Options options;
  CLI::App app("cuBLASLt's first algorithm beside the one that is chosen");
  app.add_option("--types", options.types, "f16, bf16, tf32, f32, f16x3")->delimiter(',');
  app.add_option("--batches", options.batches, "rows of a batch")->delimiter(',');
  swizzle::bench::AddRunOptions(app, options.run);
  CLI11_PARSE(app, argc, argv);
  return swizzle::bench::Main(options);
}
