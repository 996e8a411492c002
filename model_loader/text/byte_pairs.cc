#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "model_loader/files/printable_name.h"
#include "model_loader/text/byte_tokens.h"
#include "model_loader/text/token_model.h"
#include "model_loader/text/utf8.h"

namespace swizzle::text {
namespace {

struct Merge {
  uint32_t rank;
  int32_t id;  // of the token that it makes
};

// By the ids of both, the first in the upper half.
using MergeTable = absl::flat_hash_map<uint64_t, Merge>;

uint64_t PairKey(int32_t first, int32_t second) {
  return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second);
}

// Tokens that become fewer: a list through a vector, whose first stays first.
class Word {
 public:
  explicit Word(const MergeTable& merges) : merges_(merges) {}

  // A token that stands for so many bytes.
  void Add(int32_t id, size_t bytes) {
    const auto place = static_cast<uint32_t>(symbols_.size());
    symbols_.push_back({id, place - 1, place + 1, static_cast<uint32_t>(bytes)});
  }

  void MergeAll() {
    for (uint32_t i = 0; i + 1 < symbols_.size(); ++i) Offer(i);
    while (!candidates_.empty()) {
      std::ranges::pop_heap(candidates_, Later);
      const Candidate candidate = candidates_.back();
      candidates_.pop_back();
      Apply(candidate);
    }
  }

  void AppendTo(std::vector<int32_t>& ids, std::vector<Range>* places) const {
    size_t at = 0;
    for (size_t i = 0; i < symbols_.size(); i = symbols_[i].next) {
      ids.push_back(symbols_[i].id);
      if (places != nullptr) places->push_back({at, at + symbols_[i].bytes});
      at += symbols_[i].bytes;
    }
  }

 private:
  static constexpr int32_t kGone = -1;
  // One that the first has before it, or the last behind, is no place in the vector.
  struct Symbol {
    int32_t id;
    uint32_t previous, next;
    uint32_t bytes;
  };
  // That the symbol at `place` and the one behind it become the token `id`.
  struct Candidate {
    uint32_t rank, place;
    int32_t id;
  };

  static bool Later(const Candidate& one, const Candidate& other) {
    return one.rank != other.rank ? one.rank > other.rank : one.place > other.place;
  }

  const Merge* MergeAt(uint32_t place) const {
    const uint32_t next = symbols_[place].next;
    if (next >= symbols_.size()) return nullptr;
    const auto found = merges_.find(PairKey(symbols_[place].id, symbols_[next].id));
    return found == merges_.end() ? nullptr : &found->second;
  }

  void Offer(uint32_t place) {
    const Merge* merge = MergeAt(place);
    if (merge == nullptr) return;
    candidates_.push_back({merge->rank, place, merge->id});
    std::ranges::push_heap(candidates_, Later);
  }

  void Apply(const Candidate& candidate) {
    Symbol& first = symbols_[candidate.place];
    if (first.id == kGone) return;
    const Merge* merge = MergeAt(candidate.place);  // other merges may have been there before
    if (merge == nullptr || merge->id != candidate.id) return;
    Symbol& second = symbols_[first.next];
    first.id = candidate.id;
    first.bytes += second.bytes;
    first.next = second.next;
    second.id = kGone;
    if (first.next < symbols_.size()) symbols_[first.next].previous = candidate.place;
    if (first.previous < symbols_.size()) Offer(first.previous);
    Offer(candidate.place);
  }

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // a heap, the least rank on top
};

class BytePairs final : public TokenModel {
 public:
  BytePairs(PrefixTrie trie, MergeTable merges, const ByteTokens& bytes, const BytePairOptions& options)
      : trie_(std::move(trie)),
        merges_(std::move(merges)),
        options_(options),
        unknown_(options.unknown ? trie_.Find(*options.unknown) : PrefixTrie::kNone),
        bytes_(bytes) {}

  Status Encode(std::string_view piece, std::vector<int32_t>& ids, std::vector<Range>* places) const override {
    const int32_t whole = options_.ignore_merges ? Find(piece) : PrefixTrie::kNone;
    if (whole != PrefixTrie::kNone) {
      ids.push_back(whole);
      if (places != nullptr) places->push_back({0, piece.size()});
      return {};
    }
    Word word(merges_);
    AddCharacters(piece, word);
    word.MergeAll();
    word.AppendTo(ids, places);
    return {};
  }

  int32_t Find(std::string_view token) const override { return trie_.Find(token); }

 private:
  // How the vocabulary spells a character; `memory` is for what is longer than that.
  std::string_view Spelled(std::string_view character, bool first, bool last, std::string& memory) const {
    const bool prefixed = !first && !options_.prefix.empty(), suffixed = last && !options_.suffix.empty();
    if (!prefixed && !suffixed) return character;
    memory = prefixed ? options_.prefix : "";
    memory += character;
    if (suffixed) memory += options_.suffix;
    return memory;
  }

  // An unknown token is added when the next known one is, or at the end: until then others fuse with it.
  void AddCharacters(std::string_view piece, Word& word) const {
    size_t pending = 0;  // bytes
    std::string memory;
    for (size_t at = 0; at < piece.size();) {
      const size_t bytes = BytesOf(piece[at]), next = at + bytes;
      const std::string_view character = Spelled(piece.substr(at, bytes), at == 0, next == piece.size(), memory);
      const int32_t id = trie_.Find(character);
      if (id != PrefixTrie::kNone) {
        if (pending > 0) word.Add(unknown_, pending);
        pending = 0;
        word.Add(id, bytes);
      } else if (!AddBytes(character, bytes, word) && unknown_ != PrefixTrie::kNone) {
        if (pending > 0 && !options_.fuse_unknown) word.Add(unknown_, std::exchange(pending, 0));
        pending += bytes;
      }
      at = next;
    }
    if (pending > 0) word.Add(unknown_, pending);
  }

  // `width`: bytes of the text that the character stands for, fewer than it is spelled with.
  bool AddBytes(std::string_view character, size_t width, Word& word) const {
    if (!options_.byte_fallback || !bytes_.HasAll(character)) return false;
    for (const char byte : character) {
      const size_t own = std::min<size_t>(width, 1);
      word.Add(bytes_.Of(byte), own);
      width -= own;
    }
    return true;
  }

  const PrefixTrie trie_;
  const MergeTable merges_;
  const BytePairOptions options_;
  const int32_t unknown_;
  const ByteTokens bytes_;
};

StatusOr<MergeTable> MakeTable(const PrefixTrie& trie, const Merges& merges, const BytePairOptions& options) {
  MergeTable table;
  table.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [first, second] = merges[rank];
    if (!second.starts_with(options.prefix)) {
      return InvalidArgument("its merge ", rank, " has ", QuotedName(second), " second, which lacks the prefix ",
                             QuotedName(options.prefix));
    }
    const std::string both = first + second.substr(options.prefix.size());
    const int32_t ids[] = {trie.Find(first), trie.Find(second), trie.Find(both)};
    for (size_t i = 0; i < 3; ++i) {
      if (ids[i] != PrefixTrie::kNone) continue;
      return InvalidArgument("its merge ", rank, " names the token ",
                             QuotedName(i == 0   ? first
                                        : i == 1 ? second
                                                 : both),
                             ", which its vocabulary lacks");
    }
    table[PairKey(ids[0], ids[1])] = {static_cast<uint32_t>(rank), ids[2]};
  }
  return table;
}

}  // namespace

StatusOr<OwnedTokenModel> MakeBytePairs(TokenIds vocabulary, const Merges& merges, const BytePairOptions& options) {
  ByteTokens bytes;
  for (const auto& [token, id] : vocabulary) bytes.Offer(token, id);
  PrefixTrie trie(std::move(vocabulary));
  if (options.unknown && trie.Find(*options.unknown) == PrefixTrie::kNone) {
    return InvalidArgument("its vocabulary lacks the unknown token ", QuotedName(*options.unknown), "; add it");
  }
  SWIZZLE_ASSIGN_OR_RETURN(MergeTable table, MakeTable(trie, merges, options));
  return std::make_unique<BytePairs>(std::move(trie), std::move(table), bytes, options);
}

}  // namespace swizzle::text
