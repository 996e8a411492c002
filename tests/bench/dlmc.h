// Patterns of the Deep Learning Matrix Collection (Gale et al., SC20) as benchmark cases.
#ifndef SWIZZLE_TESTS_BENCH_DLMC_H_
#define SWIZZLE_TESTS_BENCH_DLMC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/format/csr.h"

namespace swizzle::bench {

struct DlmcCase {
  std::string name;  // "transformer/0.9/body_decoder_layer_0_ffn_conv1_fully_connected"
  std::string path;
  std::vector<int64_t> columns;  // N: 128 and 256 for Transformers, the layer's positions for ResNet-50
};

// Matrices below `folder` of these sparsities ("0.8"), in a fixed order. Of `sample` > 0, that many, evenly spread over
// models and sparsities.
std::vector<DlmcCase> FindDlmcCases(const std::string& folder, const std::vector<std::string>& sparsities, int sample);

// The pattern with values from a normal distribution of deviation 0.1, drawn with a fixed seed.
StatusOr<CsrMatrix> ReadDlmc(const std::string& path);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_DLMC_H_
