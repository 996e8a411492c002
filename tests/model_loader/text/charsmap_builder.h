// Makes a precompiled_charsmap, for tests: see model_loader/text/charsmap.h.
#ifndef SWIZZLE_TESTS_MODEL_LOADER_TEXT_CHARSMAP_BUILDER_H_
#define SWIZZLE_TESTS_MODEL_LOADER_TEXT_CHARSMAP_BUILDER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace swizzle::text {

// A double array of these rules. Each node's children, with the node's value as the child of the zero byte, get a block
// of 256 units of their own, so that none collide.
inline std::string BuildCharsmap(const std::map<std::string, std::string>& rules) {
  std::string replacements;
  std::map<std::string, uint32_t> values;
  for (const auto& [key, replacement] : rules) {
    values[key] = static_cast<uint32_t>(replacements.size());
    replacements += replacement + '\0';
  }
  std::set<std::string> nodes;  // all beginnings of keys
  for (const auto& [key, replacement] : rules) {
    for (size_t bytes = 0; bytes <= key.size(); ++bytes) nodes.insert(key.substr(0, bytes));
  }
  std::map<std::string, uint32_t> blocks;
  for (const std::string& node : nodes) blocks[node] = 256 * static_cast<uint32_t>(blocks.size() + 1);
  std::vector<uint32_t> units(256 * (blocks.size() + 1));
  for (const std::string& node : nodes) {
    const uint32_t place =
        node.empty() ? 0 : blocks[node.substr(0, node.size() - 1)] ^ static_cast<uint8_t>(node.back());
    const uint32_t label = node.empty() ? 0 : static_cast<uint8_t>(node.back());
    const bool ends = values.contains(node);
    units[place] = label | (ends ? 0x100u : 0u) | (place ^ blocks[node]) << 10;
    if (ends) units[blocks[node]] = values[node] | 0x80000000u;
  }
  std::string bytes;
  const auto put = [&](uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xFF);
  };
  put(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) put(unit);
  return bytes + replacements;
}

}  // namespace swizzle::text

#endif  // SWIZZLE_TESTS_MODEL_LOADER_TEXT_CHARSMAP_BUILDER_H_
