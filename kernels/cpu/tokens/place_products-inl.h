// What places add to the scores of a block of queries and a block of keys (operator/place_vectors.h). Compiled per
// target, into what runs attention.
//
// A block's queries are multiplied once with all places between the two blocks, and each few keys with the places that
// the queries have for them; both products are then gathered by the place of each pair.
#if defined(SWIZZLE_KERNELS_CPU_TOKENS_PLACE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_TOKENS_PLACE_PRODUCTS_INL_H_
#undef SWIZZLE_KERNELS_CPU_TOKENS_PLACE_PRODUCTS_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_TOKENS_PLACE_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/tokens/attention_places.h"
#include "kernels/cpu/tokens/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {  // of each source file that includes this

// The products of a few keys with as many places as queries may have for them, and whole vectors at the end.
inline constexpr int64_t kKeyProducts = kQueryBlock + kMaxRows + kMaxVectors * kLanes;

template <int kRows, int kVectors>
void MultiplyKeys(const Broadcasts& keys, const float* vectors, int64_t stride, float* to) {
  Tile<kRows, kVectors> tile;
  tile.SetZero();
  tile.MultiplyAdd(keys, vectors, stride);
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kVectors; ++j) hn::StoreU(tile.sums[r][j], FloatTag(), to + r * kKeyProducts + j * kLanes);
  }
}

// In rows of kKeyProducts, `count` rounded up to whole vectors.
template <int kRows, int kVectors = kMaxVectors>
void MultiplyKeysByPlaces(const Broadcasts& keys, const float* vectors, int64_t stride, int64_t count, float* to) {
  for (; count > (kVectors - 1) * kLanes; count -= kVectors * kLanes) {
    MultiplyKeys<kRows, kVectors>(keys, vectors, stride, to);
    vectors += kVectors * kLanes;
    to += kVectors * kLanes;
  }
  if constexpr (kVectors > 1) {
    if (count > 0) MultiplyKeysByPlaces<kRows, kVectors - 1>(keys, vectors, stride, count, to);
  }
}

constexpr decltype(&MultiplyKeysByPlaces<1>) kKeysByPlaces[kMaxRows] = {
    MultiplyKeysByPlaces<1>, MultiplyKeysByPlaces<2>, MultiplyKeysByPlaces<3>,
    MultiplyKeysByPlaces<4>, MultiplyKeysByPlaces<5>, MultiplyKeysByPlaces<6>};

template <int kRows, int kVectors>
void MultiplyQueries(const Broadcasts& vectors, const float* queries, float* to) {
  Tile<kRows, kVectors> tile;
  tile.SetZero();
  tile.MultiplyAdd(vectors, queries);
  tile.Store(to);
}

template <int kVectors>
constexpr decltype(&MultiplyQueries<1, kVectors>) kQueriesByPlaces[kMaxRows] = {
    MultiplyQueries<1, kVectors>, MultiplyQueries<2, kVectors>, MultiplyQueries<3, kVectors>,
    MultiplyQueries<4, kVectors>, MultiplyQueries<5, kVectors>, MultiplyQueries<6, kVectors>};

// A block of queries, as BlockState has them, and a block of keys.
struct PlaceBlock {
  const AttentionPlaces& vectors;
  int64_t head;
  int64_t first_distance;  // the first key's from the first query
  const float* queries;    // scaled
  float scale;             // of keys' products, to go with them
  float* of_queries;       // room for kQueryBlock + kKeyBlock rows of the block's queries
};

// Adds to the pieces of the block what places add to the scores, which it puts into `to`, a row of queries a key.
template <int kVectors>
void AddPlaceProducts(const PlaceBlock& block, int64_t size, std::span<Piece> pieces, float* to) {
  constexpr int64_t kWidth = kVectors * kLanes;
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  int64_t keys = 0;
  for (const Piece& piece : pieces) keys += piece.count;
  // places[i]: of query q and key k, q - k being i - (keys - 1); they fall.
  int32_t places[kQueryBlock + kKeyBlock];
  const int64_t farthest = block.first_distance + keys - 1;
  for (int64_t i = 0; i < kWidth + keys - 1; ++i) places[i] = block.vectors.distances().At(farthest - i);
  const int64_t least = block.vectors.distances().At(block.first_distance - kWidth + 1);
  ForEachTile(block.vectors.distances().At(farthest) - least + 1, [&](int64_t first, int64_t rows) {
    const Broadcasts vectors = {block.vectors.OfQueries(block.head, least + first), size, 1, size};
    kQueriesByPlaces<kVectors>[rows - 1](vectors, block.queries, block.of_queries + first * kWidth);
  });
  const auto lanes = hn::Iota(di, 0);
  const FloatVector scale = hn::Set(d, block.scale);
  const int32_t* of_key = places + keys - 1;  // of the block's queries and one key, then of the next
  for (Piece& piece : pieces) {
    piece.pair_bias = to;
    ForEachTile(piece.count, [&](int64_t first, int64_t rows) {
      HWY_ALIGN float products[kMaxRows * kKeyProducts];
      Broadcasts some = piece.keys;
      some.data += first * some.row_stride;
      const int64_t low = of_key[kWidth - 1], high = of_key[1 - rows];
      kKeysByPlaces[rows - 1](some, block.vectors.OfKeys(block.head, low), block.vectors.key_stride(), high - low + 1,
                              products);
      for (int64_t r = 0; r < rows; ++r, --of_key, to += kWidth) {
        SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
          const auto place = hn::LoadU(di, of_key + j * kLanes);
          const auto row = hn::Mul(hn::Sub(place, hn::Set(di, static_cast<int32_t>(least))),
                                   hn::Set(di, static_cast<int32_t>(kWidth)));
          const auto lane = hn::Add(lanes, hn::Set(di, static_cast<int32_t>(j * kLanes)));
          const FloatVector of_query = hn::GatherIndex(d, block.of_queries, hn::Add(row, lane));
          const auto column = hn::Sub(place, hn::Set(di, static_cast<int32_t>(low)));
          const FloatVector product = hn::GatherIndex(d, products + r * kKeyProducts, column);
          hn::Store(hn::MulAdd(product, scale, of_query), d, to + j * kLanes);
        }
      }
    });
  }
}

}  // namespace
}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
