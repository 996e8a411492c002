// Byte-level BPE's view of text, of GPT-2 (https://github.com/openai/gpt-2, src/encoder.py): a printable character for
// each byte, and the pattern that its words are found by. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_BYTE_LEVEL_H_
#define SWIZZLE_MODEL_LOADER_TEXT_BYTE_LEVEL_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace swizzle::text {

// Appends the characters of the bytes: for one that Latin-1 prints, that; for the others U+0100 and on.
void AppendByteCharacters(std::string_view bytes, std::string& text);

// Appends the bytes whose characters these are. False, with nothing appended, where one is no byte's. REQUIRES: `text`
// is well-formed.
bool AppendBytesOf(std::string_view text, std::string& bytes);

// How many bytes the character of one has.
size_t ByteCharacterBytes(char byte);

// Where the word ends that begins at `begin`, by GPT-2's pattern:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Words follow each other without a gap. REQUIRES: `text` is well-formed, and a character begins at `begin`.
size_t WordEnd(std::string_view text, size_t begin);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_BYTE_LEVEL_H_
