#include "tests/bench/dlmc.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace swizzle::bench {
namespace {

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Positions of one 224x224 image in a ResNet-50 layer. The first convolution of a group still has the plane before it.
int64_t ResnetPositions(const std::string& name) {
  if (Has(name, "final_dense")) return 1;
  for (int group = 1; group <= 4; ++group) {
    if (!Has(name, Concat("block_group", group))) continue;
    const bool first = Has(name, "bottleneck_1_block_group_projection") && group > 1;
    const int64_t side = (first ? 112 : 56) >> (group - 1);
    return side * side;
  }
  return 112 * 112;  // the stem
}

class Numbers {
 public:
  explicit Numbers(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) {}
  int64_t Next() {
    while (at_ < end_ && (*at_ < '0' || *at_ > '9')) ++at_;
    int64_t value = -1;
    at_ = std::from_chars(at_, end_, value).ptr;
    return value;
  }

 private:
  const char* at_;
  const char* const end_;
};

}  // namespace

std::vector<DlmcCase> FindDlmcCases(const std::string& folder, const std::vector<std::string>& sparsities, int sample) {
  std::vector<DlmcCase> cases;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".smtx") continue;
    const std::string sparsity = entry.path().parent_path().filename();
    if (std::find(sparsities.begin(), sparsities.end(), sparsity) == sparsities.end()) continue;
    const std::string model = entry.path().parent_path().parent_path().parent_path().filename();
    const std::string layer = entry.path().stem();
    cases.push_back({Concat(model, "/", sparsity, "/", layer), entry.path(), {}});
    if (model == "transformer") {
      cases.back().columns = {128, 256};
    } else {
      cases.back().columns = {ResnetPositions(layer)};
    }
  }
  std::sort(cases.begin(), cases.end(), [](const DlmcCase& a, const DlmcCase& b) { return a.name < b.name; });
  const int64_t all = static_cast<int64_t>(cases.size());
  if (sample <= 0 || sample >= all) return cases;
  std::vector<DlmcCase> some;
  for (int64_t i = 0; i < sample; ++i) some.push_back(cases[(2 * i + 1) * all / (2 * sample)]);
  return some;
}

StatusOr<CsrMatrix> ReadDlmc(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string content = text.str();
  Numbers numbers(content);
  CsrMatrix matrix;
  matrix.rows = numbers.Next();
  matrix.cols = numbers.Next();
  const int64_t nonzeros = numbers.Next();
  if (nonzeros < 0) return InvalidArgument(path, " is no .smtx file");
  for (int64_t row = 0; row <= matrix.rows; ++row) matrix.row_offsets.push_back(static_cast<uint32_t>(numbers.Next()));
  for (int64_t i = 0; i < nonzeros; ++i) matrix.col_indices.push_back(static_cast<uint32_t>(numbers.Next()));
  for (int64_t row = 0; row < matrix.rows; ++row) {
    std::sort(matrix.col_indices.begin() + matrix.row_offsets[row],
              matrix.col_indices.begin() + matrix.row_offsets[row + 1]);
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  matrix.values.resize(nonzeros);
  for (float& value : matrix.values) value = normal(random);
  SWIZZLE_RETURN_IF_ERROR(Annotate(matrix.Validate(), path));
  return matrix;
}

}  // namespace swizzle::bench
