#include "model_loader/packed/packed_writer.h"

#include <algorithm>
#include <string>

#include "kernels/base/field_count.h"
#include "kernels/format/whole_values.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/packed/array_writer.h"
#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_matrix.h"
#include "model_loader/packed/packed_operator.h"
#include "model_loader/packed/packed_quantisation.h"
#include "model_loader/packed/packed_zeros.h"

namespace swizzle {
namespace {

void PackWeight(const Weight& weight, ArrayWriter& arrays, packed::Weight& proto) {
  const auto& [matrix, bias, quantisation] = weight;  // all that packed_reader.cc reads
  proto.set_rows(weight.rows());
  proto.set_cols(weight.cols());
  proto.mutable_parts()->set_format(std::string(FormatName(weight.format())));
  const DType whole_type = quantisation ? quantisation->dtype : DType::kInt8;
  MatrixWriter writer(arrays, *proto.mutable_parts(), DType::kFloat32, WholeValues(weight), whole_type);
  matrix.Write(writer);
  if (!bias.empty()) arrays.Add(DType::kFloat32, std::as_bytes(std::span(bias)), *proto.mutable_bias());
  PackQuantisation(quantisation, proto);
}

void PackSequences(const SequenceInputs& sequences, packed::SequenceInputs& proto) {
  static_assert(FieldCount<SequenceInputs>() == 8, "what they have more than this stands below too");
  proto.set_length(sequences.length);
  if (sequences.mask != -1) proto.set_mask(sequences.mask);
  proto.set_masked_bias(sequences.masked_bias);
  proto.set_skips_masked(sequences.skips_masked);
  if (sequences.counted != -1) proto.set_counted(sequences.counted);
  proto.set_padding(sequences.padding);
  proto.set_longest(sequences.longest);
  if (sequences.end.input == -1) return;
  proto.mutable_end()->set_input(sequences.end.input);
  proto.mutable_end()->set_at_largest(sequences.end.at_largest);
  proto.mutable_end()->set_id(sequences.end.id);
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
  if (zeros) PackZeros(*zeros, *proto.mutable_zeros());
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

StatusOr<FilePieces> PiecesOf(const Network& network) {
  ArrayWriter arrays;
  const packed::Header header = PackHeader(network, arrays);
  const auto with_weights = std::ranges::count_if(network.layers, [](const Layer& layer) { return layer.weight >= 0; });
  const bool shares_weights = with_weights > std::ssize(network.weights);
  const bool has_ends = network.sequences && network.sequences->end.input != -1;
  const uint32_t plain_version = shares_weights ? kSharedWeightsVersion : kNetworkVersion;
  return PackedFile(header, std::move(arrays), has_ends ? kEndsVersion : plain_version);
}

}  // namespace

StatusOr<std::vector<std::byte>> EncodePacked(const Network& network) {
  SWIZZLE_ASSIGN_OR_RETURN(const FilePieces pieces, PiecesOf(network));
  return Joined(pieces);
}

Status WritePacked(const Network& network, const std::filesystem::path& file) {
  SWIZZLE_RETURN_IF_ERROR(network.ValidateModel());
  SWIZZLE_ASSIGN_OR_RETURN(const FilePieces pieces, PiecesOf(network));
  return WriteFileAtomically(file, pieces);
}

}  // namespace swizzle
