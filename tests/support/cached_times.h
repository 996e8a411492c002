// Changes what a tuning cache knows, so that plans are chosen as if kernels had taken other times.
#ifndef SWIZZLE_TESTS_SUPPORT_CACHED_TIMES_H_
#define SWIZZLE_TESTS_SUPPORT_CACHED_TIMES_H_

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace swizzle::testing {

// Calls change(record) for each of a cache's file, which stays a cache. REQUIRES: no open cache saves to it meanwhile.
template <typename Change>
void ChangeCachedTimes(const std::filesystem::path& file, const Change& change) {
  std::ifstream in(file);
  std::ostringstream out;
  std::string line;
  std::getline(in, line);  // what kind of file it is
  out << line << "\n";
  while (std::getline(in, line)) {
    nlohmann::json record = nlohmann::json::parse(line);
    change(record);
    out << record.dump() << "\n";
  }
  std::ofstream(file) << out.str();
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_CACHED_TIMES_H_
