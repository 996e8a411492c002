// How many rows a region's plan takes at a time.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_LARGEST_BATCH_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_LARGEST_BATCH_H_

#include "model_loader/interpreter/values/array.h"
#include "model_loader/network/network.h"
#include "model_loader/regions/region.h"

namespace swizzle::regions {

inline constexpr int64_t kMostRows = 512;  // of vectors, on the host

// How many rows of so many bytes are whole packs of 16, which a device's kernels read and write; a power of two.
int64_t RowsOfPack(int64_t row_bytes);

// As many as the host's caches hold some of, or as fill a device. There, parts of that size begin at multiples of 16
// bytes in every input and output, since its kernels read and write such packs, though that be more than fill it.
int64_t LargestBatch(const Network& network, Form form, interpreter::Place place);

// LargestSequences says so of a network of token sequences: how many rows, and tokens of all of them.
BatchSize LargestSequences(const Network& network, interpreter::Place place);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_LARGEST_BATCH_H_
