// The fields of config.pbtxt that mean something to this server: a table, from which the check of a file and the page
// CONFIG.md follow. To honour another field, add its row and do what it says in model_config.cc or served_spec.cc.
#ifndef SWIZZLE_SERVER_CONFIG_CONFIG_FIELDS_H_
#define SWIZZLE_SERVER_CONFIG_CONFIG_FIELDS_H_

#include <google/protobuf/message.h>

#include <array>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

struct ConfigField {
  std::string_view path;  // "dynamic_batching.max_queue_delay_microseconds"; of a repeated field without its index
  std::string_view meaning;
};

inline constexpr auto kConfigFields = std::to_array<ConfigField>({
    {"name", "has to be the directory's"},
    {"backend",
     "`swizzle`, or `onnxruntime`, which stands for the same; `identity` is a model without weights that answers its "
     "input"},
    {"platform", "what the server itself reports, such as `swizzle_onnx`, or `onnxruntime_onnx`; changes nothing"},
    {"max_batch_size",
     "the most rows that run together, up to 4096; without `dynamic_batching` beside it, requests then run one by one, "
     "as in Triton; 0: shapes are exactly the model's"},
    {"input", "all of the model's inputs, or none, in the order that requests see"},
    {"input.name", "checked against the model"},
    {"input.data_type", "checked against the model"},
    {"input.dims",
     "without the batch dimension where `max_batch_size` is above 0; a number fixes what the model leaves open"},
    {"output", "as `input`"},
    {"output.name", "checked against the model"},
    {"output.data_type", "checked against the model"},
    {"output.dims", "as `input.dims`"},
    {"instance_group", "executors of the model"},
    {"instance_group.count", "executors that run batches side by side, on each GPU, or sharing out the processors"},
    {"instance_group.kind", "`KIND_CPU`, `KIND_GPU` or `KIND_AUTO`, the same in all groups"},
    {"dynamic_batching", "the server forms batches of several requests"},
    {"dynamic_batching.preferred_batch_size", "sizes that are not worth a longer wait"},
    {"dynamic_batching.max_queue_delay_microseconds", "how long a request may wait for others to join its batch"},
    {"dynamic_batching.default_queue_policy", "the queue's limits"},
    {"dynamic_batching.default_queue_policy.default_timeout_microseconds",
     "a request that has not started by then ends in DEADLINE_EXCEEDED; 0: 10 s more than the delay"},
    {"dynamic_batching.default_queue_policy.allow_timeout_override",
     "whether a request's parameter `timeout` may shorten that"},
    {"dynamic_batching.default_queue_policy.max_queue_size",
     "requests that may wait; further ones end in RESOURCE_EXHAUSTED; 0: 1024; see the parameters for rows, bytes and "
     "time"},
    {"parameters", "see below"},
});

// UNIMPLEMENTED for the first field of `config` that is set and not in the table.
Status RefuseOtherFields(const google::protobuf::Message& config);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CONFIG_CONFIG_FIELDS_H_
