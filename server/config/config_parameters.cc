#include "server/config/config_parameters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "kernels/base/precision.h"
#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

using inference::ModelConfig;

constexpr int64_t kMaxExecuteDelayMs = 60'000;
constexpr int64_t kMaxBatchTokens = int64_t{1} << 22;
constexpr std::string_view kExecuteDelayKey = "execute_delay_ms";
constexpr std::string_view kRepeatCountKey = "repeat_count";
constexpr int64_t kMaxRepeatCount = 1'000'000;
constexpr std::string_view kMaxBatchTokensKey = "max_batch_tokens";
constexpr std::string_view kPreferredTokensKey = "preferred_batch_tokens";
constexpr std::string_view kComputeMaskedKey = "compute_masked";
constexpr std::string_view kPrecisionKey = "precision";
constexpr std::string_view kTextKey = "text";
constexpr std::string_view kQueueRowsKey = "max_queue_rows";
constexpr std::string_view kQueueBytesKey = "max_queue_bytes";
constexpr std::string_view kQueueWaitKey = "max_queue_wait_ms";
constexpr std::string_view kConnectionQueueKey = "max_connection_queue_percent";
constexpr int64_t kMaxQueueRows = 1'000'000;
constexpr int64_t kMaxQueueBytes = int64_t{1} << 40;
constexpr int64_t kMaxQueueWaitMs = 86'400'000;

StatusOr<int64_t> ParseWhole(std::string_view key, const std::string& text, int64_t low, int64_t high) {
  int64_t value = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < low || value > high) {
    return InvalidArgument("parameter '", key, "' is '", text, "'; it must be a whole number from ", low, " to ", high);
  }
  return value;
}

StatusOr<bool> ParseComputeMasked(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  return InvalidArgument("parameter '", kComputeMaskedKey, "' is '", text, "'; it must be true or false");
}

StatusOr<Precision> ParsePrecision(const std::string& text) {
  if (const auto precision = PrecisionFromName(text)) return *precision;
  return InvalidArgument("parameter '", kPrecisionKey, "' is '", text,
                         "'; it must be FP32, FP16X3, TF32, FP16, BF16 or INT8");
}

constexpr std::string_view kTokenSequences = "token sequences";
constexpr std::string_view kAll = "all";

constexpr auto kParameters = std::to_array<ConfigParameter>({
    {kExecuteDelayKey, "`identity`", "milliseconds that a batch takes",
     [](std::string_view key, const std::string& value) {
       return ParseWhole(key, value, 0, kMaxExecuteDelayMs).status();
     }},
    {kRepeatCountKey, "decoupled `identity`", "answers to each request, 1 if not set; each takes `execute_delay_ms`",
     [](std::string_view key, const std::string& value) {
       return ParseWhole(key, value, 1, kMaxRepeatCount).status();
     }},
    {kMaxBatchTokensKey, kTokenSequences,
     "the most tokens that run together, and that a sequence may have; requests with more run in several batches",
     [](std::string_view key, const std::string& value) {
       return ParseWhole(key, value, 1, kMaxBatchTokens).status();
     }},
    {kPreferredTokensKey, kTokenSequences,
     "tokens that a batch is filled to; requests with more run in several. If not set, 512 for each thread of an "
     "executor on the CPU, and `max_batch_tokens` on a GPU",
     [](std::string_view key, const std::string& value) {
       return ParseWhole(key, value, 1, kMaxBatchTokens).status();
     }},
    {kComputeMaskedKey, kTokenSequences, "`true`: tokens that a mask excludes are computed as well",
     [](std::string_view, const std::string& value) { return ParseComputeMasked(value).status(); }},
    {kPrecisionKey, "any model file", "`FP32`, `FP16X3`, `TF32`, `BF16`, `FP16` or `INT8`",
     [](std::string_view, const std::string& value) { return ParsePrecision(value).status(); }},
    {kTextKey, kTokenSequences,
     "the model takes texts, by the tokeniser in its folder. `embedding`: it gives a vector of each; "
     "`token_embedding`: that, and one of each of its tokens; `classification`: of each, or of each pair, the scores "
     "of its labels",
     [](std::string_view, const std::string& value) -> Status {
       if (text::TextTaskOf(value)) return absl::OkStatus();
       return InvalidArgument("parameter '", kTextKey, "' is '", value, "'; it must be ", text::kTextTaskNames);
     }},
    {kQueueRowsKey, kAll,
     "rows that may wait, 1024 if not set; those of one batch an executor may in any case, and one request",
     [](std::string_view key, const std::string& value) { return ParseWhole(key, value, 1, kMaxQueueRows).status(); }},
    {kQueueBytesKey, kAll, "bytes of inputs that may wait, 268435456 if not set; one request may in any case",
     [](std::string_view key, const std::string& value) { return ParseWhole(key, value, 1, kMaxQueueBytes).status(); }},
    {kQueueWaitKey, kAll,
     "milliseconds that a request may be expected to wait, 5000 if not set; where it would be more, it ends in "
     "RESOURCE_EXHAUSTED at once",
     [](std::string_view key, const std::string& value) {
       return ParseWhole(key, value, 1, kMaxQueueWaitMs).status();
     }},
    {kConnectionQueueKey, kAll,
     "of each bound of the queue what the requests of one connection may take, in percent, 90 if not set; 100: all",
     [](std::string_view key, const std::string& value) { return ParseWhole(key, value, 1, 100).status(); }},
});

constexpr std::string_view kOnnxRuntime = "onnxruntime", kOpenVino = "openvino", kTensorRt = "tensorrt";

constexpr auto kOtherParameters = std::to_array<OtherParameter>({
    {kOnnxRuntime, "intra_op_thread_count"},
    {kOnnxRuntime, "inter_op_thread_count"},
    {kOnnxRuntime, "execution_mode"},
    {kOnnxRuntime, "enable_mem_arena"},
    {kOnnxRuntime, "enable_mem_pattern"},
    {kOnnxRuntime, "memory."},
    {kOnnxRuntime, "session."},
    {kOnnxRuntime, "optimization."},
    {kOnnxRuntime, "ep."},
    {kOnnxRuntime, "mlas."},
    {kOnnxRuntime, "gpu_mem_limit"},
    {kOnnxRuntime, "arena_extend_strategy"},
    {kOnnxRuntime, "cudnn_conv_algo_search"},
    {kOnnxRuntime, "cudnn_conv_use_max_workspace"},
    {kOnnxRuntime, "cudnn_conv1d_pad_to_nc1d"},
    {kOnnxRuntime, "do_copy_in_default_stream"},
    {kOnnxRuntime, "use_device_allocator_for_initializers"},
    {kOnnxRuntime, "share_session_between_instances"},
    {kOnnxRuntime, "profiling"},
    {kOpenVino, "CPU_EXTENSION_PATH"},
    {kOpenVino, "INFERENCE_NUM_THREADS"},
    {kOpenVino, "COMPILATION_NUM_THREADS"},
    {kOpenVino, "CPU_THREADS_NUM"},
    {kOpenVino, "CPU_THROUGHPUT_STREAMS"},
    {kOpenVino, "NUM_STREAMS"},
    {kOpenVino, "HINT_BF16"},
    {kOpenVino, "ENFORCE_BF16"},
    {kOpenVino, "PERFORMANCE_HINT"},
    {kOpenVino, "TARGET_DEVICE"},
    {kOpenVino, "SKIP_OV_DYNAMIC_BATCHSIZE"},
    {kOpenVino, "ENABLE_BATCH_PADDING"},
    {kOpenVino, "RESHAPE_IO_LAYERS"},
    {kTensorRt, "execution_context_allocation_strategy"},
    {kTensorRt, "precision_mode"},
    {kTensorRt, "max_workspace_size_bytes"},
});

bool IsOfQueue(std::string_view key) {
  return key == kQueueRowsKey || key == kQueueBytesKey || key == kQueueWaitKey || key == kConnectionQueueKey;
}

}  // namespace

std::span<const ConfigParameter> ConfigParameters() { return kParameters; }

std::span<const OtherParameter> OtherParameters() { return kOtherParameters; }

const OtherParameter* FindOtherParameter(std::string_view key) {
  const auto found = std::ranges::find_if(kOtherParameters, [&](const OtherParameter& other) {
    return other.key == key || (other.key.ends_with('.') && key.starts_with(other.key));
  });
  return found == kOtherParameters.end() ? nullptr : &*found;
}

Status CheckParameters(const ModelConfig& config) {
  for (const auto& [key, parameter] : config.parameters()) {
    const auto row = std::ranges::find(kParameters, std::string_view(key), &ConfigParameter::key);
    if (row == kParameters.end()) {
      if (FindOtherParameter(key) != nullptr) continue;
      return InvalidArgument("parameter ", QuotedName(key),
                             " is not known; remove it, or see the page of config.pbtxt");
    }
    if (key == kRepeatCountKey && !(config.backend() == "identity" && config.model_transaction_policy().decoupled())) {
      return InvalidArgument("parameter '", key,
                             "' is for models with `backend: \"identity\"` and `model_transaction_policy { decoupled: "
                             "true }` only");
    }
    if (key == kExecuteDelayKey && config.backend() != "identity") {
      return InvalidArgument("parameter '", key, "' is for models with `backend: \"identity\"` only");
    }
    SWIZZLE_RETURN_IF_ERROR(row->check(key, parameter.string_value()));
  }
  return absl::OkStatus();
}

Status ApplyParameters(const ModelConfig& config, ModelSpec& spec) {
  for (const auto& [key, parameter] : config.parameters()) {
    if (IsOfQueue(key) || FindOtherParameter(key) != nullptr || key == kTextKey) continue;
    if (spec.max_batch_tokens == 0 && key != kPrecisionKey) {
      return InvalidArgument("parameter '", key, "' is for models of token sequences; this one is none");
    }
    if (key == kMaxBatchTokensKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.max_batch_tokens, ParseWhole(key, parameter.string_value(), 1, kMaxBatchTokens));
    } else if (key == kPreferredTokensKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.preferred_batch_tokens,
                               ParseWhole(key, parameter.string_value(), 1, kMaxBatchTokens));
    } else if (key == kComputeMaskedKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.compute_masked, ParseComputeMasked(parameter.string_value()));
    } else if (key == kPrecisionKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.precision, ParsePrecision(parameter.string_value()));
    }
  }
  return absl::OkStatus();
}

Status ApplyQueueParameters(const ModelConfig& config, ModelSpec& spec) {
  for (const auto& [key, parameter] : config.parameters()) {
    const std::string& text = parameter.string_value();
    if (key == kQueueRowsKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.max_queue_rows, ParseWhole(key, text, 1, kMaxQueueRows));
    } else if (key == kQueueBytesKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.max_queue_bytes, ParseWhole(key, text, 1, kMaxQueueBytes));
    } else if (key == kQueueWaitKey) {
      SWIZZLE_ASSIGN_OR_RETURN(const int64_t milliseconds, ParseWhole(key, text, 1, kMaxQueueWaitMs));
      spec.max_queue_wait = absl::Milliseconds(milliseconds);
    } else if (key == kConnectionQueueKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.max_connection_queue_percent, ParseWhole(key, text, 1, 100));
    }
  }
  return absl::OkStatus();
}

std::optional<text::TextTask> TextTaskIn(const ModelConfig& config) {
  const auto found = config.parameters().find(std::string(kTextKey));
  return found == config.parameters().end() ? std::nullopt : text::TextTaskOf(found->second.string_value());
}

void SetTextTask(text::TextTask task, std::optional<ModelConfig>& config) {
  if (!config) config.emplace();
  (*config->mutable_parameters())[std::string(kTextKey)].set_string_value(std::string(text::TextTaskName(task)));
}

absl::Duration ExecuteDelay(const ModelConfig& config) {
  const auto found = config.parameters().find(std::string(kExecuteDelayKey));
  if (found == config.parameters().end()) return absl::ZeroDuration();
  return absl::Milliseconds(*ParseWhole(kExecuteDelayKey, found->second.string_value(), 0, kMaxExecuteDelayMs));
}

int64_t RepeatCount(const ModelConfig& config) {
  const auto found = config.parameters().find(std::string(kRepeatCountKey));
  if (found == config.parameters().end()) return 1;
  return *ParseWhole(kRepeatCountKey, found->second.string_value(), 1, kMaxRepeatCount);
}

}  // namespace swizzle
