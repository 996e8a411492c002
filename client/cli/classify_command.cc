// classify: a file of images through a classifier, and how many labels come out right.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/ranking.h"
#include "client/cli/report.h"
#include "client/load_generator.h"
#include "client/npy.h"

namespace swizzle::client {
namespace {

// The class of each image, filled in as answers come. Thread-safe: requests write to rows of their own.
class Predictions {
 public:
  explicit Predictions(int64_t images) : classes_(images, -1) {}

  void Record(int64_t first_row, int64_t rows, const InferResult& result) {
    absl::Status status = RecordRows(first_row, rows, result);
    std::lock_guard lock(mutex_);
    status_.Update(std::move(status));
  }

  absl::Status status() {
    std::lock_guard lock(mutex_);
    return status_;
  }
  const std::vector<int64_t>& classes() const { return classes_; }

 private:
  absl::Status RecordRows(int64_t first_row, int64_t rows, const InferResult& result) {
    if (result.outputs.empty()) return absl::InternalError("the model has no output");
    const auto best = BestOfRows(result.outputs[0], 1);
    if (!best.ok()) return best.status();
    if (static_cast<int64_t>(best->size()) != rows) {
      return absl::UnimplementedError(absl::StrCat("output '", result.outputs[0].name, "' has ", best->size(),
                                                   " rows for ", rows, " images; this model is not a classifier"));
    }
    for (int64_t i = 0; i < rows; ++i) classes_[first_row + i] = (*best)[i][0].index;
    return absl::OkStatus();
  }

  std::vector<int64_t> classes_;
  std::mutex mutex_;  // guards status_
  absl::Status status_;
};

template <typename T>
std::vector<int64_t> Widen(const Tensor& tensor) {
  const auto values = tensor.Values<T>();
  return {values.begin(), values.end()};
}

absl::StatusOr<std::vector<int64_t>> ReadLabels(const ClassifyOptions& options, int64_t images) {
  absl::StatusOr<Tensor> tensor = ReadNpy(options.labels);
  if (!tensor.ok()) return AsUsageError(tensor.status());
  if (tensor->shape != Shape{images}) {
    return UsageError(absl::StrCat("--labels ", options.labels, " has the shape ", ShapeText(tensor->shape), "; ",
                                   images, " images need ", ShapeText({images})));
  }
  if (tensor->datatype == "UINT8") return Widen<uint8_t>(*tensor);
  if (tensor->datatype == "INT32") return Widen<int32_t>(*tensor);
  if (tensor->datatype == "INT64") return Widen<int64_t>(*tensor);
  return UsageError(
      absl::StrCat("--labels ", options.labels, " holds ", tensor->datatype, "; save them as uint8, int32 or int64"));
}

absl::StatusOr<Tensor> ReadImages(Client& client, const ClassifyOptions& options) {
  absl::StatusOr<Tensor> images = ReadNpy(options.images);
  if (!images.ok()) return AsUsageError(images.status());
  if (images->shape.empty() || images->shape[0] == 0) {
    return UsageError(absl::StrCat("--images ", options.images, " holds no rows"));
  }
  const absl::StatusOr<ModelMetadata> metadata = client.GetModelMetadata(options.model);
  if (!metadata.ok()) return metadata.status();
  if (metadata->inputs.size() != 1) {
    return UsageError(absl::StrCat("model '", options.model, "' has ", metadata->inputs.size(),
                                   " inputs; classify feeds models of one"));
  }
  images->name = metadata->inputs[0].name;
  return images;
}

void PrintReport(const ClassifyOptions& options, const LoadReport& report, int64_t images, int64_t correct,
                 Terminal& terminal) {
  const bool labelled = !options.labels.empty();
  const double top1 = static_cast<double>(correct) / static_cast<double>(images);
  if (terminal.json) {
    Json json = {{"model", options.model}, {"concurrency", options.concurrency}, {"images", images}};
    if (labelled) json.update({{"correct", correct}, {"top1", top1}});
    json["images_per_second"] = static_cast<double>(images) / absl::ToDoubleSeconds(report.elapsed);
    json.update(ReportJson(report, options.batch));
    PrintJson(json, terminal);
    return;
  }
  terminal.out << absl::StrFormat("%s: %d images in batches of %d, %d in flight, %.2f s\n", options.model, images,
                                  options.batch, options.concurrency, absl::ToDoubleSeconds(report.elapsed));
  if (labelled) terminal.out << absl::StrFormat("  %-15s %.2f %% (%d of %d)\n", "top-1", 100 * top1, correct, images);
  terminal.out << ReportText(report, options.batch);
}

int64_t CountCorrect(const std::vector<int64_t>& predicted, const std::vector<int64_t>& labels) {
  int64_t correct = 0;
  for (size_t i = 0; i < labels.size(); ++i) correct += predicted[i] == labels[i];
  return correct;
}

// Sends every image once, in order, in batches of at most options.batch.
class Classifier {
 public:
  Classifier(Client& client, const ClassifyOptions& options, const Tensor& images)
      : client_(client), options_(options), images_(images), predictions_(images.shape[0]) {}

  absl::StatusOr<LoadReport> Run(Terminal& terminal) {
    const int64_t requests = (images_.shape[0] + options_.batch - 1) / options_.batch;
    if (options_.warmup > 0) {
      const LoadReport warmup = Send(std::min(options_.warmup, requests), [](int64_t, absl::Duration) {});
      if (!warmup.first_error.ok()) return warmup.first_error;
    }
    LoadReport report = Send(requests, ProgressLine(terminal, requests, options_.batch));
    ClearProgressLine(terminal);
    if (!report.first_error.ok()) return report.first_error;
    if (const absl::Status status = predictions_.status(); !status.ok()) return status;
    return report;
  }

  const std::vector<int64_t>& classes() const { return predictions_.classes(); }

 private:
  LoadReport Send(int64_t requests, const ProgressSink& progress) {
    const LoadOptions load{.concurrency = options_.concurrency, .requests = requests};
    const auto source = [this](int64_t index) {
      auto request = std::make_shared<InferRequest>();
      request->model = options_.model;
      request->inputs = {Rows(images_, Begin(index), Begin(index + 1))};
      return request;
    };
    const auto sink = [this](int64_t index, const InferResult& result) {
      predictions_.Record(Begin(index), Begin(index + 1) - Begin(index), result);
    };
    return RunLoad(client_, load, source, sink, progress);
  }

  int64_t Begin(int64_t index) const { return std::min(index * options_.batch, images_.shape[0]); }

  Client& client_;
  const ClassifyOptions& options_;
  const Tensor& images_;
  Predictions predictions_;
};

}  // namespace

absl::Status RunClassify(Client& client, const ClassifyOptions& options, Terminal& terminal) {
  const absl::StatusOr<Tensor> images = ReadImages(client, options);
  if (!images.ok()) return images.status();
  const int64_t count = images->shape[0];
  std::vector<int64_t> labels;
  if (!options.labels.empty()) {
    absl::StatusOr<std::vector<int64_t>> read = ReadLabels(options, count);
    if (!read.ok()) return read.status();
    labels = *std::move(read);
  }
  Classifier classifier(client, options, *images);
  const absl::StatusOr<LoadReport> report = classifier.Run(terminal);
  if (!report.ok()) return report.status();
  PrintReport(options, *report, count, CountCorrect(classifier.classes(), labels), terminal);
  if (options.predictions.empty()) return absl::OkStatus();
  return AsUsageError(
      WriteNpy(options.predictions, MakeTensor<int64_t>("predictions", "INT64", {count}, classifier.classes())));
}

}  // namespace swizzle::client
