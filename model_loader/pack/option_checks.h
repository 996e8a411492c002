// What values of swizzle-pack's flags may be, as CLI11 asks for it: a check returns "" for a good value, else what is
// wrong with it. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_PACK_OPTION_CHECKS_H_
#define SWIZZLE_MODEL_LOADER_PACK_OPTION_CHECKS_H_

#include <string>
#include <vector>

namespace swizzle::pack {

// These look at the names of files to write.
std::string CheckPackedEnding(const std::string& file);
std::string CheckModelEnding(const std::string& file);
std::string CheckPageEnding(const std::string& file);

// CLI11's own check prints the largest double, in 309 digits, as the end of the range. The number is parsed after it.
std::string IsNotNegative(const std::string& number);

// Threads wait for each other by spinning: more of them than processors took a hundred times as long. Lowers a number
// that is larger.
std::string AtMostProcessors(std::string& threads);

std::string PrecisionNames();  // "FP32, BF16"
std::string CheckPrecision(const std::string& text);
std::string CheckGroupLimit(const std::string& text);
std::string CheckPart(const std::string& text);  // of a whole

// What `pack --format` takes: the formats of weights that leave zeros out, and "auto".
struct FormatChoices {
  std::vector<std::string> names;
  std::string help;  // "csr, shfl-bw where 16 rows or more share columns"
};
FormatChoices FormatsOfWeights();

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_OPTION_CHECKS_H_
