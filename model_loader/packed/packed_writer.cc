#include "model_loader/packed/packed_writer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/base/field_count.h"
#include "kernels/format/whole_values.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/packed/array_writer.h"
#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_operator.h"
#include "model_loader/packed/packed_quantisation.h"

namespace swizzle {
namespace {

class MatrixWriter final : public PartSink {
 public:
  MatrixWriter(const Weight& weight, ArrayWriter& arrays, packed::Matrix& proto)
      : wholes_(WholeValues(weight)), arrays_(arrays), proto_(proto) {
    if (wholes_) whole_type_ = weight.quantisation->dtype;
  }

  void Scalar(std::string_view name, int64_t value) override {
    packed::Scalar& scalar = *proto_.add_scalars();
    scalar.set_name(std::string(name));
    scalar.set_value(value);
  }

  void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
    packed::NamedArray& named = *proto_.add_arrays();
    named.set_name(std::string(array.name));
    if (wholes_ && array.role == MatrixArray::Role::kValues) {
      arrays_.Add(whole_type_, *wholes_, *named.mutable_array());
    } else if (array.stored == array.type) {
      arrays_.Add(array.type, elements, *named.mutable_array());
    } else {
      const std::vector<uint16_t> narrow = Narrowed(elements);
      arrays_.Add(array.stored, std::as_bytes(std::span(narrow)), *named.mutable_array());
    }
  }

 private:
  static std::vector<uint16_t> Narrowed(std::span<const std::byte> elements) {
    std::vector<uint16_t> narrow(elements.size() / sizeof(uint32_t));
    for (size_t i = 0; i < narrow.size(); ++i) {
      uint32_t element;
      std::memcpy(&element, elements.data() + i * sizeof(element), sizeof(element));
      narrow[i] = static_cast<uint16_t>(element);
    }
    return narrow;
  }

  const std::optional<std::vector<std::byte>> wholes_;  // none: values are real numbers
  DType whole_type_ = DType::kInt8;
  ArrayWriter& arrays_;
  packed::Matrix& proto_;
};

void PackWeight(const Weight& weight, ArrayWriter& arrays, packed::Weight& proto) {
  const auto& [matrix, bias, quantisation] = weight;  // all that packed_reader.cc reads
  proto.set_rows(weight.rows());
  proto.set_cols(weight.cols());
  proto.mutable_parts()->set_format(std::string(FormatName(weight.format())));
  MatrixWriter writer(weight, arrays, *proto.mutable_parts());
  matrix.Write(writer);
  if (!bias.empty()) arrays.Add(DType::kFloat32, std::as_bytes(std::span(bias)), *proto.mutable_bias());
  PackQuantisation(quantisation, proto);
}

void PackSequences(const SequenceInputs& sequences, packed::SequenceInputs& proto) {
  static_assert(FieldCount<SequenceInputs>() == 6, "what they have more than this stands below too");
  proto.set_length(sequences.length);
  if (sequences.mask != -1) proto.set_mask(sequences.mask);
  proto.set_masked_bias(sequences.masked_bias);
  proto.set_skips_masked(sequences.skips_masked);
  if (sequences.counted != -1) proto.set_counted(sequences.counted);
  proto.set_padding(sequences.padding);
}

void PackLayer(const Layer& layer, packed::Layer& proto) {
  static_assert(FieldCount<Layer>() == 5, "what a layer has more than this stands below too");
  PackOperator(layer, proto);
  proto.set_name(layer.name);
  proto.mutable_inputs()->Add(layer.inputs.begin(), layer.inputs.end());
  proto.set_output(layer.output);
  if (layer.weight != -1) proto.set_weight(layer.weight);
}

void PackValue(const NetworkValue& value, packed::Value& proto) {
  // As packed_reader.cc reads them.
  const auto& [name, channels, height, width, per_token, ids, quantisation, zeros] = value;
  proto.set_name(name);
  proto.set_channels(channels);
  proto.set_height(height);
  proto.set_width(width);
  proto.set_per_token(per_token);
  proto.set_ids(ids);
  PackQuantisation(quantisation, proto);
  if (!zeros) return;
  const auto& [empty_channels, empty_planes, empty_runs, elements] = *zeros;
  proto.mutable_zeros()->set_channels(empty_channels);
  proto.mutable_zeros()->set_planes(empty_planes);
  proto.mutable_zeros()->set_runs(empty_runs);
  proto.mutable_zeros()->set_elements(elements);
}

void PackPort(const NetworkPort& port, packed::Port& proto) {
  static_assert(FieldCount<NetworkPort>() == 4, "what a port has more than this stands below too");
  proto.set_name(port.name);
  proto.set_datatype(std::string(DTypeName(port.dtype)));
  proto.mutable_dims()->Add(port.dims.begin(), port.dims.end());
  proto.set_value(port.value);
}

packed::Header PackHeader(const Network& network, ArrayWriter& arrays) {
  const auto& [producer, batch_size, values, layers, weights, inputs, outputs, sequences] = network;
  packed::Header header;
  header.set_producer(producer);
  header.set_batch_size(batch_size);
  for (const NetworkValue& value : values) PackValue(value, *header.add_values());
  for (const Layer& layer : layers) PackLayer(layer, *header.add_layers());
  for (const Weight& weight : weights) PackWeight(weight, arrays, *header.add_weights());
  for (const NetworkPort& port : inputs) PackPort(port, *header.add_inputs());
  for (const NetworkPort& port : outputs) PackPort(port, *header.add_outputs());
  if (sequences) PackSequences(*sequences, *header.mutable_sequences());
  return header;
}

}  // namespace

StatusOr<std::vector<std::byte>> EncodePacked(const Network& network) {
  ArrayWriter arrays;
  const packed::Header header = PackHeader(network, arrays);
  const auto with_weights = std::ranges::count_if(network.layers, [](const Layer& layer) { return layer.weight >= 0; });
  const bool shares_weights = with_weights > std::ssize(network.weights);
  return PackedFile(header, arrays, shares_weights ? kPackedVersion : kNetworkVersion);
}

Status WritePacked(const Network& network, const std::filesystem::path& file) {
  SWIZZLE_RETURN_IF_ERROR(network.ValidateModel());
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, EncodePacked(network));
  return WriteFileAtomically(file, bytes);
}

}  // namespace swizzle
