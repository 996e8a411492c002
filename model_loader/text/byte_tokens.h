// The tokens that a vocabulary has for single bytes, which stand for characters that it lacks (byte_fallback).
// Const members are thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_BYTE_TOKENS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_BYTE_TOKENS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model_loader/text/prefix_trie.h"

namespace swizzle::text {

class ByteTokens {
 public:
  // None.
  ByteTokens() { ids_.fill(PrefixTrie::kNone); }

  // Takes a token if it is one of a byte: if it is called "<0x00>" to "<0xFF>".
  void Offer(std::string_view token, int32_t id) {
    const std::optional<char> byte = ByteOf(token);
    const auto is_small = [](char c) { return 'a' <= c && c <= 'f'; };
    if (byte && std::ranges::none_of(token, is_small)) ids_[static_cast<uint8_t>(*byte)] = id;
  }
  // The byte that a token stands for, in small letters, too, as the `tokenizers` library decodes it; none for others.
  static std::optional<char> ByteOf(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    const int high = Digit(token[3]), low = Digit(token[4]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<char>(high * 16 + low);
  }

  // PrefixTrie::kNone where there is none.
  int32_t Of(char byte) const { return ids_[static_cast<uint8_t>(byte)]; }
  bool HasAll(std::string_view bytes) const {
    return std::ranges::all_of(bytes, [&](char byte) { return Of(byte) != PrefixTrie::kNone; });
  }

 private:
  static int Digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

  std::array<int32_t, 256> ids_;
};

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_BYTE_TOKENS_H_
