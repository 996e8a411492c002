// Which processor this is, as /proc/cpuinfo says.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_PROCESSOR_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_PROCESSOR_H_

#include <istream>
#include <string>

namespace swizzle::cpu {

// Value type.
struct Processor {
  std::string name = "unknown processor";
  std::string vendor = "?", family = "?", model = "?";
  // Of those that kernels or oneDNN use, separated by spaces, in a fixed order: "avx avx2 fma avx512f".
  std::string instruction_sets;

  // "AuthenticAMD family 25 model 17"
  std::string Identity() const { return vendor + " family " + family + " model " + model; }
};

// Of the first processor in the text of /proc/cpuinfo.
Processor ParseProcessor(std::istream& cpuinfo);

Processor ThisProcessor();

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_PROCESSOR_H_
