// What layers with sparse weights read on calibration data. Plain values.
#ifndef SWIZZLE_MODEL_LOADER_PACK_SEEN_VALUES_H_
#define SWIZZLE_MODEL_LOADER_PACK_SEEN_VALUES_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model_loader/interpreter/run/executor.h"
#include "model_loader/network/network.h"

namespace swizzle {
class Backend;
}

namespace swizzle::pack {

// Whether zeros of what the layer reads may save anything: a convolution or linear layer with a sparse weight.
bool MaySkipInputZeros(const Network& network, const Layer& layer);

struct SeenValue {
  InputZeros zeros;         // of all rows
  std::vector<float> rows;  // some of them, in NCHW
};
using SeenValues = std::map<int, SeenValue>;  // by value of the network

// All rows of the data go through the network on `cpu`. INVALID_ARGUMENT where the data does not fit; UNIMPLEMENTED for
// tokens.
StatusOr<SeenValues> SeeValues(const Network& network, const std::filesystem::path& calibration, Backend& cpu,
                               int threads);

// The same of a graph, node by node, by the name of each FP32 value that a Conv, Gemm or MatMul multiplies with a known
// weight of zeros for the most part.
StatusOr<std::map<std::string, SeenValue>> SeeValues(const interpreter::Program& program,
                                                     const std::filesystem::path& calibration, Backend& cpu,
                                                     int threads);

// The same of a network whose values have zeros, with rows drawn after them.
SeenValues DrawSeenValues(const Network& network);

// Lets plans of the network know.
void KeepZeros(const SeenValues& seen, Network& network);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_SEEN_VALUES_H_
