#include "model_loader/plan/fuse_layers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace swizzle {
namespace {

constexpr int kNone = -1;

// Who makes and reads each value. Layers are taken out of it by marking them.
class Fuser {
 public:
  explicit Fuser(Network& network)
      : network_(network),
        maker_(network.values.size(), kNone),
        readers_(network.values.size()),
        gone_(network.layers.size()) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      maker_[network.layers[i].output] = static_cast<int>(i);
      for (int value : network.layers[i].inputs) ++readers_[value];
    }
    for (const NetworkPort& port : network.outputs) ++readers_[port.value];
  }

  void FuseFunctions() {
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      const Layer& layer = network_.layers[i];
      if (layer.op != Op::kFunction || layer.epilogue != Epilogue{}) continue;
      Layer* const conv = OnlyReadConv(layer.inputs[0]);
      if (conv == nullptr || conv->epilogue.function) continue;
      conv->epilogue.function = layer.function();
      maker_[layer.output] = maker_[conv->output];
      conv->output = layer.output;
      gone_[i] = true;
    }
  }

  void FuseAttentionInputs() {
    for (Layer& layer : network_.layers) {
      if (layer.op == Op::kAttention && !layer.attention().packed) PackAttention(layer);
    }
  }

  void RemoveGone() {
    std::vector<Layer> kept;
    for (size_t i = 0; i < network_.layers.size(); ++i) {
      if (!gone_[i]) kept.push_back(std::move(network_.layers[i]));
    }
    network_.layers = std::move(kept);
  }

 private:
  // The convolution that makes a value which has one reader; null if there is none.
  Layer* OnlyReadConv(int value) {
    if (maker_[value] == kNone || readers_[value] != 1) return nullptr;
    Layer& layer = network_.layers[maker_[value]];
    return layer.op == Op::kConv ? &layer : nullptr;
  }

  bool CanJoin(const Layer& a, const Layer& b) const {
    return a.inputs == b.inputs && a.window() == b.window() && a.epilogue == b.epilogue && !a.epilogue.residual &&
           network_.weights[a.weight].format() == network_.weights[b.weight].format();
  }

  void PackAttention(Layer& attention) {
    std::array<Layer*, 3> parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i] = OnlyReadConv(attention.inputs[i]);
      if (parts[i] == nullptr || !CanJoin(*parts[0], *parts[i])) return;
    }
    Layer& first = **std::ranges::min_element(parts);  // in the order of execution
    const Weight weight = Stack({&network_.weights[parts[0]->weight], &network_.weights[parts[1]->weight],
                                 &network_.weights[parts[2]->weight]});
    NetworkValue value = network_.values[first.output];
    value.channels = weight.rows();
    for (const Layer* part : parts) {
      network_.weights[part->weight] = Weight{};
      if (part != &first) gone_[part - network_.layers.data()] = true;
    }
    network_.weights[first.weight] = weight;
    first.output = static_cast<int>(network_.values.size());
    network_.values.push_back(std::move(value));
    attention.inputs = {first.output};
    attention.attention().packed = true;
  }

  // The rows of all, one after another. REQUIRES: one format.
  static Weight Stack(const std::array<const Weight*, 3>& parts) {
    Weight stacked = *parts[0];
    const bool bias = std::ranges::any_of(parts, [](const Weight* part) { return !part->bias.empty(); });
    if (bias) stacked.bias.resize(parts[0]->rows());
    for (size_t i = 1; i < parts.size(); ++i) {
      if (auto* csr = std::get_if<CsrMatrix>(&stacked.matrix)) {
        Append(std::get<CsrMatrix>(parts[i]->matrix), *csr);
      } else {
        Append(std::get<DenseMatrix>(parts[i]->matrix), std::get<DenseMatrix>(stacked.matrix));
      }
      if (!bias) continue;
      stacked.bias.insert(stacked.bias.end(), parts[i]->bias.begin(), parts[i]->bias.end());
      stacked.bias.resize(stacked.rows());
    }
    return stacked;
  }

  static void Append(const DenseMatrix& more, DenseMatrix& to) {
    to.rows += more.rows;
    to.values.insert(to.values.end(), more.values.begin(), more.values.end());
  }

  static void Append(const CsrMatrix& more, CsrMatrix& to) {
    const uint32_t entries = to.row_offsets.back();
    for (int64_t row = 1; row <= more.rows; ++row) to.row_offsets.push_back(entries + more.row_offsets[row]);
    to.rows += more.rows;
    to.col_indices.insert(to.col_indices.end(), more.col_indices.begin(), more.col_indices.end());
    to.values.insert(to.values.end(), more.values.begin(), more.values.end());
  }

  Network& network_;
  std::vector<int> maker_;    // layer by value; kNone: an input
  std::vector<int> readers_;  // of each value, ports among them
  std::vector<bool> gone_;    // layers
};

}  // namespace

void FuseLayers(Network& network) {
  Fuser fuser(network);
  fuser.FuseFunctions();
  fuser.FuseAttentionInputs();
  fuser.RemoveGone();
}

}  // namespace swizzle
