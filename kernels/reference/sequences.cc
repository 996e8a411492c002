#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "kernels/operator/pair_biases.h"
#include "kernels/operator/place_vectors.h"
#include "kernels/reference/reference.h"

namespace swizzle::reference {

Result Embedding(const Problem& problem, const Weight& weight, const Values& ids, const Sequences& sequences) {
  const DenseMatrix table = weight.ToDense();
  const int64_t channels = problem.output.channels;
  Result result(problem.output.batch * channels);
  for (int64_t token = 0; token < problem.output.batch; ++token) {
    const int64_t row = problem.lookup().by_position ? sequences.positions[token] + problem.lookup().offset
                                                     : std::bit_cast<int32_t>(ids[token]);
    for (int64_t c = 0; c < channels; ++c) result[token * channels + c] = table.values[row * channels + c];
  }
  return result;
}

namespace {

// Of inputs like the output.
template <typename Input>
Result Normalise(const Problem& problem, const Input& input, std::span<const float> scales,
                 std::span<const float> biases) {
  const auto& [epsilon, centred, groups] = problem.normalisation();
  const int64_t channels = problem.output.channels / groups;  // of one
  Result result(input.size());
  const int64_t plane = problem.output.plane();
  for (int64_t i = 0; i < problem.output.positions() * groups; ++i) {
    const int64_t position = i / groups, first = i % groups * channels;
    const auto at = [&](int64_t c) {
      return (position / plane * problem.output.channels + first + c) * plane + position % plane;
    };
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < channels && centred; ++c) mean += input[at(c)] / static_cast<double>(channels);
    for (int64_t c = 0; c < channels; ++c) {
      variance += (input[at(c)] - mean) * (input[at(c)] - mean) / static_cast<double>(channels);
    }
    for (int64_t c = 0; c < channels; ++c) {
      const double bias = biases.empty() ? 0.0 : biases[first + c];
      result[at(c)] = (input[at(c)] - mean) / std::sqrt(variance + epsilon) * scales[first + c] + bias;
    }
  }
  return result;
}

Result NormOfProduct(const Problem& problem, const Weight& weight, const Values& input, const Values& residual) {
  const DenseMatrix matrix = weight.ToDense();
  const std::span<const float> ends(weight.bias);
  Result sums(residual.begin(), residual.end());
  for (int64_t token = 0; token < problem.output.batch; ++token) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      double& sum = sums[token * matrix.rows + row];
      sum += ends[row];
      for (int64_t c = 0; c < matrix.cols; ++c) {
        sum += double{matrix.values[row * matrix.cols + c]} * input[token * matrix.cols + c];
      }
    }
  }
  return Normalise(problem, sums, ends.subspan(matrix.rows, matrix.rows), ends.subspan(2 * matrix.rows));
}

}  // namespace

Result LayerNorm(const Problem& problem, const Weight& weight, const Values& input, const Values& residual) {
  if (problem.epilogue.residual) return NormOfProduct(problem, weight, input, residual);
  return Normalise(problem, input, weight.ToDense().values, weight.bias);
}

namespace {

// In four sums side by side: in one, each addition waits for the one before it.
double Product(std::span<const float> a, const float* b) {
  std::array<double, 4> sums = {};
  size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += double{a[i + j]} * b[i + j];
  }
  for (; i < a.size(); ++i) sums[0] += double{a[i]} * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The weights of all keys of tokens [begin, end) for one query and head; zeros where every key is masked. Biases are
// those of `window`.
Result AttentionWeights(const Problem& problem, const AttentionInputs& inputs, const Sequences& sequences,
                        const DenseMatrix* matrix, int64_t window, int64_t query, int64_t head, int64_t begin,
                        int64_t end) {
  const PairPlaces pairs = PairPlacesOf(problem.attention());
  const bool is_biased = problem.op == Op::kBiasedAttention, is_disentangled = problem.op == Op::kDisentangledAttention;
  const auto places = is_disentangled ? std::optional<DistancePlaces>(*matrix) : std::nullopt;
  const int64_t channels = problem.input.channels, size = channels / problem.attention().heads;
  const int64_t key_head = head / problem.attention().group_size;
  const int64_t first_column = is_biased && matrix->cols != pairs.count() ? window * pairs.count() : 0;
  const int64_t key_channels = KeyChannels(problem);
  Result weights(end - begin);
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t key = begin; key < end; ++key) {
    const float* const of_query = inputs.queries.data() + query * channels + head * size;
    const float* const of_key = inputs.keys.data() + key * key_channels + key_head * size;
    double score = Product({of_query, of_query + size}, of_key);
    for (int64_t c = 0; is_disentangled && c < size; ++c) {
      const int64_t of_heads = head * size + c;
      const float* const at_place = matrix->values.data() + places->At(key - query);
      score += double{of_query[c]} * at_place[of_heads * matrix->cols] +
               double{of_key[c]} * at_place[(channels + of_heads) * matrix->cols];
    }
    double bias = sequences.key_bias.empty() ? 0.0 : sequences.key_bias[key];
    if (is_biased) {
      bias += matrix->values[head * matrix->cols + first_column + pairs.At(query - begin, key - begin)];
    }
    weights[key - begin] = score * problem.attention().scale + bias;
    largest = std::max(largest, weights[key - begin]);
  }
  double total = 0;
  for (double& weight : weights) {
    weight = std::isinf(largest) ? 0 : std::exp(weight - largest);
    total += weight;
  }
  for (double& weight : weights) weight = total == 0 ? 0 : weight / total;
  return weights;
}

// The sequence that `token` belongs to.
int64_t SequenceOf(const Sequences& sequences, int64_t token) {
  int64_t sequence = 0;
  while (sequences.begins[sequence + 1] <= token) ++sequence;
  return sequence;
}

// The attention of operands that lie side by side.
Result PackedAttention(const Problem& problem, const Values& input, const Sequences& sequences, const Weight* weight) {
  const int64_t all = problem.input.channels, queries = QueryChannels(problem);
  const int64_t until_keys = queries + KeyChannels(problem);
  const auto columns = [&](int64_t first, int64_t last) {
    Values part;
    for (auto row = input.begin(); row != input.end(); row += all) part.insert(part.end(), row + first, row + last);
    return part;
  };
  Problem apart = problem;
  apart.attention().packed = false;
  apart.input.channels = queries;
  return Attention(apart, {columns(0, queries), columns(queries, until_keys), columns(until_keys, all)}, sequences,
                   weight);
}

}  // namespace

Result Attention(const Problem& problem, const AttentionInputs& inputs, const Sequences& sequences,
                 const Weight* weight) {
  if (problem.attention().packed) return PackedAttention(problem, inputs.queries, sequences, weight);
  const DenseMatrix* const matrix = weight == nullptr ? nullptr : weight->matrix.As<DenseMatrix>();
  const int64_t channels = problem.output.channels, size = channels / problem.attention().heads;
  const int64_t value_channels = ValueChannels(problem);
  Result result(problem.output.batch * channels);
  for (int64_t query = 0; query < problem.output.batch; ++query) {
    const int64_t sequence = SequenceOf(sequences, query);
    int64_t begin = sequences.begins[sequence], end = sequences.begins[sequence + 1], window = 0;
    if (problem.attention().windows > 1) {
      window = (query - begin) / problem.attention().length;
      begin += window * problem.attention().length;
      end = std::min(begin + problem.attention().length, end);
    }
    for (int64_t head = 0; head < problem.attention().heads; ++head) {
      const Result weights = AttentionWeights(problem, inputs, sequences, matrix, window, query, head, begin, end);
      const float* const values = inputs.values.data() + head / problem.attention().group_size * size;
      double* const sums = result.data() + query * channels + head * size;
      for (int64_t key = begin; key < end; ++key) {
        const double key_weight = weights[key - begin];
        for (int64_t c = 0; c < size; ++c) sums[c] += key_weight * values[key * value_channels + c];
      }
    }
  }
  return result;
}

Result Rotary(const Problem& problem, const Weight& weight, const Values& input, const Sequences& sequences) {
  const DenseMatrix table = weight.ToDense();
  const auto& [heads, size, pairs] = problem.rotation();
  Result result(input.begin(), input.end());
  for (int64_t token = 0; token < problem.output.batch; ++token) {
    const float* const row = table.values.data() + sequences.positions[token] * table.cols;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t first = token * problem.output.channels + head * size;
      for (int64_t j = 0; j < pairs; ++j) {
        const double a = input[first + j], b = input[first + pairs + j];
        result[first + j] = a * row[j] - b * row[pairs + j];
        result[first + pairs + j] = b * row[j] + a * row[pairs + j];
      }
    }
  }
  return result;
}

Result PermuteTokens(const Problem& problem, const Weight& weight, const Values& input, const Sequences& sequences) {
  const DenseMatrix places = weight.ToDense();
  const int64_t channels = problem.output.channels;
  Result result;
  for (int64_t token = 0; token < problem.output.batch; ++token) {
    const int64_t position = sequences.positions[token];
    const int64_t from = token - position + static_cast<int64_t>(places.values[position]);
    result.insert(result.end(), input.begin() + from * channels, input.begin() + (from + 1) * channels);
  }
  return result;
}

Result PlaneTokens(const Problem& problem, const Weight& weight, const Values& input) {
  const DenseMatrix vectors = weight.ToDense();
  const int64_t length = vectors.rows, channels = vectors.cols, plane = problem.input.plane();
  const int64_t before = length - plane;
  Result result;
  for (int64_t token = 0; token < problem.output.batch; ++token) {
    const int64_t row = token / length, place = token % length;
    for (int64_t c = 0; c < channels; ++c) {
      const double position = place < before ? 0.0 : input[(row * channels + c) * plane + place - before];
      result.push_back(position + vectors.values[place * channels + c]);
    }
  }
  return result;
}

Result SelectToken(const Problem& problem, const Values& input, const Sequences& sequences) {
  const int64_t channels = problem.input.channels;
  Result result(problem.output.batch * channels);
  for (int64_t i = 0; i < problem.output.batch; ++i) {
    const int64_t length = sequences.begins[i + 1] - sequences.begins[i];
    int64_t token = problem.token_choice().token;
    if (token < 0) token += length;
    if (token < 0 || token >= length) token = length - 1;
    for (int64_t c = 0; c < channels; ++c) {
      result[i * channels + c] = input[(sequences.begins[i] + token) * channels + c];
    }
  }
  return result;
}

Result MeanTokens(const Problem& problem, const Values& input, const Sequences& sequences) {
  const int64_t channels = problem.input.channels;
  Result result(problem.output.batch * channels);
  for (int64_t i = 0; i < problem.output.batch; ++i) {
    const int64_t begin = sequences.begins[i], end = sequences.begins[i + 1];
    for (int64_t c = 0; c < channels; ++c) {
      double& mean = result[i * channels + c];
      int64_t count = 0;
      for (int64_t token = begin; token < end; ++token) {
        if (!sequences.key_bias.empty() && sequences.key_bias[token] != 0) continue;
        mean += input[token * channels + c];
        ++count;
      }
      if (count > 0) mean /= static_cast<double>(count);
    }
  }
  return result;
}

}  // namespace swizzle::reference
