// What the kernels of dense attention over packed sequences share: where operands lie, and which tokens are a block's.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_OPERANDS_CUH_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_OPERANDS_CUH_

#include <algorithm>
#include <climits>

#include "kernels/cuda/attention/attention_biases.h"
#include "kernels/cuda/attention/attention_pattern.h"
#include "kernels/cuda/attention/attention_places.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/powers.cuh"

namespace swizzle::cuda {

// Where (channel, token) lies; in elements.
struct TokenStrides {
  int64_t channel, token;
};

// What is added to the scaled scores of pairs of places, as in operator/pair_biases.h.
struct PairBiases {
  const float* data = nullptr;  // [head][last + 1], in units of log(2); null: nothing
  int query_stride = 0, offset = 0, last = 0;
  int least = INT_MIN / 2, greatest = INT_MAX / 2;  // distances at which any head attends
  const int32_t* of_window = nullptr;      // [windows]: which of the biases in `data` are a window's; null: the first
  int windows = 1, window = 1, heads = 1;  // a window is of `window` tokens

  // The biases of the window that begins with the batch's token `begin`.
  __device__ PairBiases At(int begin) const {
    PairBiases of = *this;
    if (of_window != nullptr) of.data += int64_t{of_window[begin / window % windows]} * heads * (last + 1);
    return of;
  }

  // `query` and `key` are places in the sequence.
  __device__ float At(int head, int query, int key) const {
    return data[int64_t{head} * (last + 1) + min(max(key + query * query_stride + offset, 0), last)];
  }
};

// Products of tokens with vectors of places, as in operator/place_vectors.h, in units of log(2).
struct PlaceProducts {
  const float* of_queries = nullptr;  // [token][token_stride], of the part's heads by `pitch`; null: nothing
  const float* of_keys = nullptr;
  int64_t token_stride = 0;
  int pitch = 0;
  const int32_t* places = nullptr;  // of distances from `least` on, as many as last + 1
  int least = 0, last = 0;
  int last_token = 0;  // of the batch

  // `query` and `key` are tokens of the batch; the sum may be of any where they are none of the sequence.
  __device__ float At(int head, int query, int key) const {
    const int place = places[min(max(key - query - least, 0), last)] + head * pitch;
    const int64_t of_query = min(query, last_token), of_key = min(key, last_token);
    return of_queries[of_query * token_stride + place] + of_keys[of_key * token_stride + place];
  }
};

template <typename T>
struct AttentionOperands {
  const T* queries;
  const T* keys;
  const T* values;
  T* output;
  TokenStrides query, key, value, out;
  int qk_size, vo_size;     // channels of a head
  int group_size;           // heads of queries that share one of keys and values
  const int32_t* begins;    // [sequences + 1], of windows [sequences / windows + 1]; see Begin
  const float* key_bias;    // or null
  const uint32_t* allowed;  // [query][allowed_words], see DeviceAttentionBits; or null: every key is
  int allowed_words;
  int sequences, tokens;  // windows count as sequences
  float scale;            // to units of log(2), in which scores are kept
  PairBiases pair_biases;
  PlaceProducts places = {};

  // Whether scores of pairs have something added.
  __device__ bool AddsToPairs() const { return pair_biases.data != nullptr || places.of_queries != nullptr; }

  // The head of keys and values that a head of queries reads.
  __device__ int KeyHead(int head) const { return head / group_size; }

  __device__ bool InWindows() const { return pair_biases.windows > 1; }
  // The tokens of all sequences, without spare ones. REQUIRES: InWindows().
  __device__ int TokensInWindows() const { return begins[sequences / pair_biases.windows]; }
  // The first token of a sequence, the spare tokens being the one behind the last.
  __device__ int Begin(int sequence) const {
    return InWindows() ? min(sequence * pair_biases.window, TokensInWindows()) : begins[sequence];
  }
};

inline PairBiases PairBiasesOf(const KernelArgs& args) {
  if (args.problem->op != Op::kBiasedAttention) return {};
  const auto& biases = *static_cast<const DeviceAttentionBiases*>(args.weight);
  const auto as_int = [](int64_t value) {
    return static_cast<int>(std::clamp<int64_t>(value, INT_MIN / 2, INT_MAX / 2));
  };
  const PairPlaces& places = biases.places();
  const Attention& attention = args.problem->attention();
  return {.data = biases.data(),
          .query_stride = as_int(places.query_stride),
          .offset = as_int(places.offset),
          .last = as_int(places.last),
          .least = as_int(biases.distances().least),
          .greatest = as_int(biases.distances().greatest),
          .of_window = biases.of_window(),
          .windows = as_int(attention.windows),
          .window = std::max(as_int(attention.length), 1),
          .heads = attention.heads};
}

template <Layout kLayout, DType kDType>
AttentionOperands<Element<kDType>> AttentionOperandsOf(const KernelArgs& args) {
  using T = Element<kDType>;
  const Problem& problem = *args.problem;
  const Sequences& sequences = *args.sequences;
  const int64_t tokens = problem.input.batch, q = QueryChannels(problem), k = KeyChannels(problem);
  const bool packed = problem.attention().packed;
  const auto strides = [&](int64_t channels) {
    return kLayout == Layout::kRows ? TokenStrides{RowStride(tokens), 1} : TokenStrides{1, channels};
  };
  const TokenStrides query = strides(problem.input.channels);
  const T* const first = args.Input<T>(0);
  const auto* bits =
      problem.op == Op::kSparseAttention ? static_cast<const DeviceAttentionBits*>(args.weight) : nullptr;
  return {.queries = first,
          .keys = packed ? first + q * query.channel : args.Input<T>(1),
          .values = packed ? first + (q + k) * query.channel : args.Input<T>(2),
          .output = args.Output<T>(),
          .query = query,
          .key = packed ? query : strides(k),
          .value = packed ? query : strides(ValueChannels(problem)),
          .out = strides(problem.output.channels),
          .qk_size = static_cast<int>(q / problem.attention().heads),
          .vo_size = static_cast<int>(problem.output.channels / problem.attention().heads),
          .group_size = problem.attention().group_size,
          .begins = sequences.begins.data(),
          .key_bias = sequences.key_bias.empty() ? nullptr : sequences.key_bias.data(),
          .allowed = bits == nullptr ? nullptr : bits->bits(),
          .allowed_words = bits == nullptr ? 0 : bits->words(),
          .sequences = static_cast<int>(sequences.count() * problem.attention().windows),
          .tokens = static_cast<int>(tokens),
          .scale = problem.attention().scale * kLog2E,
          .pair_biases = PairBiasesOf(args)};
}

// Calls launch(operands, heads) for all heads, or, with places, for some at a time, whose products are queued before.
template <Layout kLayout, DType kDType, typename Launch>
void AttendHeads(const KernelArgs& args, Stream& stream, const Launch& launch) {
  using T = Element<kDType>;
  const AttentionOperands<T> op = AttentionOperandsOf<kLayout, kDType>(args);
  const Problem& problem = *args.problem;
  const int heads = problem.attention().heads;
  if (problem.op != Op::kDisentangledAttention) return launch(op, heads);
  const auto& vectors = DeviceAttentionPlaces::From(args);
  const int pitch = static_cast<int>(PlacePitch(problem)), at_once = HeadsAtOnce(problem);
  auto* const of_queries = reinterpret_cast<float*>(args.workspace.data());
  auto* const of_keys = of_queries + int64_t{op.tokens} * at_once * pitch;
  CudaStream& cuda = CudaStream::From(stream);
  const bool tokens_adjacent = kLayout == Layout::kRows;
  const int64_t stride = tokens_adjacent ? op.query.channel : op.query.token;
  for (int first = 0; first < heads; first += at_once) {
    const int some = std::min(at_once, heads - first);
    const HeadOperand queries = {op.queries, op.qk_size * op.query.channel, stride, tokens_adjacent};
    const HeadOperand keys = {op.keys, op.qk_size * op.key.channel, tokens_adjacent ? op.key.channel : op.key.token,
                              tokens_adjacent};
    cuda.Report(QueuePlaceProducts(args, queries, vectors.of_queries(), first, some, of_queries, cuda));
    cuda.Report(QueuePlaceProducts(args, keys, vectors.of_keys(), first, some, of_keys, cuda));
    AttentionOperands<T> part = op;
    part.queries += int64_t{first} * op.qk_size * op.query.channel;
    part.keys += int64_t{first} * op.qk_size * op.key.channel;
    part.values += int64_t{first} * op.vo_size * op.value.channel;
    part.output += int64_t{first} * op.vo_size * op.out.channel;
    part.places = {of_queries,       of_keys,         int64_t{at_once} * pitch, pitch,
                   vectors.places(), vectors.least(), vectors.last(),           op.tokens - 1};
    launch(part, some);
  }
}

// The tokens of a block: queries [first, first + those of a tile) of [begin, end), where tiles begin at multiples also
// some before `begin`; `spare` are of no sequence.
struct AttentionWork {
  int first, begin, end;
  bool spare;
  int most_left = INT_MAX;  // tiles that follow this one, at most
};

// The keys [first, end) that a block of `queries` attends to at all, as their distances say; from `begin` on by whole
// `step`s, so that tiles lie as they do without biases.
struct KeyRange {
  int first, end;
  template <typename T>
  __device__ KeyRange(const AttentionOperands<T>& op, const AttentionWork& work, int begin, int queries, int step)
      : first(begin), end(work.spare ? begin : work.end) {
    if (op.pair_biases.data == nullptr || work.spare) return;
    first += max(max(work.first, work.begin) + op.pair_biases.least - begin, 0) / step * step;
    end = max(min(end, work.first + queries + op.pair_biases.greatest), first);
  }
};

// Which tokens of a tile, counted from its first, belong to the sequence.
struct InSequence {
  int begin, end;
  __device__ InSequence(const AttentionWork& work, int first) : begin(work.begin - first), end(work.end - first) {}
  __device__ bool Covers(int tokens) const { return begin <= 0 && end >= tokens; }
  __device__ bool Has(int token) const { return token >= begin && token < end; }
};

// Blocks that take tiles of `queries` in turn, for each of the heads: no block is without one, and none has a second,
// where sequences are as long as the mean; what is left over the same blocks take.
template <typename T>
int64_t AttentionBlocksInTurn(const AttentionOperands<T>& op, int queries) {
  const int64_t sequences = std::max(op.sequences, 1), mean = CeilDiv<int64_t>(op.tokens, sequences);
  return sequences * std::max<int64_t>(CeilDiv<int64_t>(mean, queries), 1);
}
template <typename T>
LaunchGrid AttentionGridInTurn(const AttentionOperands<T>& op, int queries, int heads) {
  return LaunchGrid(AttentionBlocksInTurn(op, queries) * heads);
}

// Blocks that see to all tiles of `queries`, for each of the heads; see attention.h.
template <typename T>
LaunchGrid AttentionGrid(const AttentionOperands<T>& op, int queries, int heads) {
  return LaunchGrid(int64_t{op.tokens} / queries + op.sequences + 1, heads);
}

// Whole warps call it: their lanes look at 32 sequences at once.
template <typename T>
__device__ AttentionWork FindAttentionWork(const AttentionOperands<T>& op, int queries) {
  const int tile = blockIdx.x, lane = threadIdx.x % 32;
  // The last sequence, the spare tokens being one more, whose tiles start at or before this one.
  int low = 0, high = op.sequences;
  while (low < high) {
    const int step = (high - low + 31) / 32, middle = min(low + (lane + 1) * step, high);
    const int before = __popc(__ballot_sync(0xFFFFFFFFu, op.Begin(middle) / queries + middle <= tile));
    low = min(low + before * step, high);
    high = before == 32 ? low : min(low + step - 1, high);
  }
  AttentionWork work;
  work.spare = low == op.sequences;
  work.begin = op.Begin(low);
  work.end = work.spare ? op.tokens : op.Begin(low + 1);
  work.first = work.begin + (tile - (work.begin / queries + low)) * queries;
  return work;
}

// Tile number `tile` of all that windows have, which need not be looked for.
template <int kQueries, typename T>
__device__ bool FindWindowTile(const AttentionOperands<T>& op, int tile, AttentionWork& work) {
  const int window = op.pair_biases.window, tokens = op.TokensInWindows();
  const int each = (window + kQueries - 1) / kQueries, windows = (tokens + window - 1) / window;
  work.spare = tile >= windows * each;
  work.begin = work.spare ? tokens : tile / each * window;
  work.end = work.spare ? op.tokens : min(work.begin + window, tokens);
  work.first = work.begin + (work.spare ? tile - windows * each : tile % each) * kQueries;
  if (!work.spare) work.first = min(work.first, work.end - 1);  // of a last window that is not whole
  work.most_left = INT_MAX;
  return !work.spare || work.first < work.end;
}

// Tile number `tile` of all that sequences have, from the multiples of kUnit at their first tokens on; false if there
// are fewer. Unlike FindAttentionWork it passes over none, but looks at kSeen sequences after the other. Whole warps
// call it.
template <int kQueries, int kUnit, typename T>
__device__ bool FindAttentionTile(const AttentionOperands<T>& op, int tile, AttentionWork& work) {
  if (kUnit == 1 && op.InWindows()) return FindWindowTile<kQueries>(op, tile, work);
  constexpr unsigned kAll = 0xFFFFFFFFu;
  constexpr int kEach = 4, kSeen = 32 * kEach;  // sequences of a lane, and of a warp
  const int lane = threadIdx.x % 32;
  for (int base = 0; base <= op.sequences; base += kSeen) {
    int begins[kEach + 1], tiles[kEach], own = 0;  // past the last sequence come the spare tokens, past these none
#pragma unroll
    for (int i = 0; i <= kEach; ++i) {
      const int sequence = base + lane * kEach + i;
      begins[i] = sequence <= op.sequences ? op.Begin(sequence) : op.tokens;
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int tokens = begins[i + 1] - begins[i] / kUnit * kUnit;
      tiles[i] = begins[i + 1] > begins[i] ? (tokens + kQueries - 1) / kQueries : 0;
      own += tiles[i];
    }
    int until = own;  // of this lane's sequences and those before them
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int before = __shfl_up_sync(kAll, until, step);
      if (lane >= step) until += before;
    }
    const unsigned beyond = __ballot_sync(kAll, until > tile);
    const int seen = __shfl_sync(kAll, until, 31);
    if (beyond != 0) {
      const int owner = __ffs(static_cast<int>(beyond)) - 1;
      int which = 0, left = tile - (until - own);  // the owner's sequence, and the tile of it
#pragma unroll
      for (int i = 0; i + 1 < kEach; ++i) {
        if (which == i && left >= tiles[i]) left -= tiles[i], ++which;
      }
      int begin = begins[0], end = begins[1];
#pragma unroll
      for (int i = 1; i < kEach; ++i) {
        if (which == i) begin = begins[i], end = begins[i + 1];
      }
      work.begin = __shfl_sync(kAll, begin, owner);
      work.end = __shfl_sync(kAll, end, owner);
      work.first = __shfl_sync(kAll, begin / kUnit * kUnit + left * kQueries, owner);
      work.spare = base + owner * kEach + __shfl_sync(kAll, which, owner) == op.sequences;
      work.most_left = base + kSeen > op.sequences ? seen - tile - 1 : INT_MAX;
      return true;
    }
    tile -= seen;
  }
  return false;
}

// The same for the tile `step` further.
template <int kQueries, int kUnit, typename T>
__device__ bool FindNextAttentionTile(const AttentionOperands<T>& op, int step, int& tile, AttentionWork& work) {
  if (work.most_left < step) return false;
  tile += step;
  return FindAttentionTile<kQueries, kUnit>(op, tile, work);
}

// Adds what pairs add to a warp's scores, which lie as a product leaves them (tensor_core/mma.cuh): of query g + 8r and
// key 8j + 2t + e in scores[j][2r + e], where the lane is 4g + t. `query` and `key` are the first ones, as tokens of
// the batch.
template <typename S>
__device__ void AddToPairs(const AttentionOperands<typename S::T>& op, const AttentionWork& work, int head, int query,
                           int key, float (&scores)[S::kOctets][4]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto add = [&](const auto& to_pairs, int first) {
#pragma unroll
    for (int j = 0; j < S::kOctets; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[j][e] += to_pairs.At(head, query - first + g + e / 2 * 8, key - first + 8 * j + 2 * t + e % 2);
      }
    }
  };
  if (op.pair_biases.data != nullptr) return add(op.pair_biases.At(work.begin), work.begin);
  add(op.places, 0);
}

// Which keys of a tile of 32 * words a block's queries attend to.
struct TilePattern {
  const uint32_t* words;  // of the block's first query and the tile's first key; null: all
  int pitch;              // from query to query
  int queries;            // of the block, that belong to the sequence

  // Of the tile of keys that begins with `key` of the sequence.
  template <typename T>
  __device__ TilePattern(const AttentionOperands<T>& op, const AttentionWork& work, int key)
      : words(op.allowed == nullptr
                  ? nullptr
                  : op.allowed + int64_t{work.first - work.begin} * op.allowed_words + (key - work.begin) / 32),
        pitch(op.allowed_words),
        queries(work.end - work.first) {}

  __device__ uint32_t Word(int query, int part) const {
    return words == nullptr ? ~0u : words[min(query, queries - 1) * pitch + part];
  }
  // Whether any of `rows` queries attends to any key of `parts` words. REQUIRES: all threads of the block call it; they
  // are then in step.
  __device__ bool Any(int rows, int parts) const {
    uint32_t any = words == nullptr ? 1 : 0;
    for (int i = threadIdx.x; words != nullptr && i < parts * rows; i += blockDim.x) any |= Word(i / parts, i % parts);
    return __syncthreads_or(any != 0) != 0;
  }
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_OPERANDS_CUH_
