// Cases of what knows of token sequences; kernel_cases.h has the rest.
#ifndef SWIZZLE_TESTS_KERNELS_SEQUENCE_CASES_H_
#define SWIZZLE_TESTS_KERNELS_SEQUENCE_CASES_H_

#include <random>
#include <vector>

#include "kernels/format/weight.h"
#include "tests/kernels/kernel_cases.h"

namespace swizzle {

// Of operators of sequences; none of any other.
std::vector<KernelCase> SequenceCases(Op op);
// Of kLayerNorm behind a product, which only plans have.
std::vector<KernelCase> NormOfProductCases();

// The biases of a case of kBiasedAttention.
Weight DrawPairBiases(const KernelCase& kernel_case, std::mt19937& random);
// The vectors of a case of kDisentangledAttention.
Weight DrawPlaceVectors(const KernelCase& kernel_case, std::mt19937& random);
// The places of a case of kPermuteTokens.
Weight DrawPlaces(const KernelCase& kernel_case, std::mt19937& random);

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_SEQUENCE_CASES_H_
