// Characters as readers see them: the extended grapheme clusters of UAX #29, by rules GB3 to GB13 of section 3.1.1.
// Without GB9c, by which consonants of Indic scripts hang together: its clusters have at least nine bytes, and who asks
// here asks for short ones. Thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_GRAPHEMES_H_
#define SWIZZLE_MODEL_LOADER_TEXT_GRAPHEMES_H_

#include <cstddef>
#include <string_view>

namespace swizzle::text {

// Where the cluster ends that begins at `begin`. REQUIRES: the text is well-formed, and a cluster begins there.
size_t GraphemeEnd(std::string_view text, size_t begin);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_GRAPHEMES_H_
