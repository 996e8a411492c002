// packed_seeds FOLDER: writes small packed models into FOLDER, which is there.
#include <cstdio>
#include <filesystem>
#include <string>

#include "model_loader/packed/packed_writer.h"
#include "tests/support/random_detector.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("Usage: packed_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto encoder = swizzle::testing::MakeRandomEncoder({});
  if (!swizzle::WritePacked(encoder, folder / "encoder.swz").ok()) return 1;
  if (!swizzle::WritePacked(swizzle::testing::MakeRandomDetector(6), folder / "detector.swz").ok()) return 1;
  for (const double sparsity : {0.0, 0.5, 1.0}) {
    for (const int64_t batch : {0, 2}) {
      const auto network = swizzle::testing::MakeRandomNetwork({.sparsity = sparsity, .batch_size = batch, .image = 6});
      const std::string name = swizzle::Concat("sparsity_", sparsity, "_batch_", batch, ".swz");
      const swizzle::Status status = swizzle::WritePacked(network, folder / name);
      if (!status.ok()) {
        std::fprintf(stderr, "packed_seeds: %s\n", std::string(status.message()).c_str());
        return 1;
      }
    }
  }
  return 0;
}
