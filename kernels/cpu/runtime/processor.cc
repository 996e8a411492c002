#include "kernels/cpu/runtime/processor.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle::cpu {
namespace {

// As Linux names them.
constexpr std::string_view kUsed[] = {"avx",         "avx2",     "fma",      "f16c",     "avx_vnni",    "avx512f",
                                      "avx512bw",    "avx512cd", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
                                      "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16"};

std::string UsedOf(const std::string& flags) {
  std::istringstream words(flags);
  std::set<std::string, std::less<>> all;
  for (std::string word; words >> word;) all.insert(word);
  std::string used;
  for (const std::string_view name : kUsed) {
    if (all.contains(name)) used += Concat(used.empty() ? "" : " ", name);
  }
  return used;
}

}  // namespace

Processor ParseProcessor(std::istream& cpuinfo) {
  Processor processor;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const size_t colon = line.find(": "), end = line.find_first_of("\t:");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, end), value = line.substr(colon + 2);
    if (key == "model name") processor.name = value;
    if (key == "vendor_id") processor.vendor = value;
    if (key == "cpu family") processor.family = value;
    if (key == "model") processor.model = value;
    if (key == "flags") processor.instruction_sets = UsedOf(value);
  }
  return processor;
}

Processor ThisProcessor() {
  std::ifstream file("/proc/cpuinfo");
  return ParseProcessor(file);
}

}  // namespace swizzle::cpu
