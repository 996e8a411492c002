#include "model_loader/files/npz.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "model_loader/files/printable_name.h"
#include "model_loader/files/read_file.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxArchiveBytes = int64_t{1} << 33;
constexpr std::string_view kEnding = ".npy";
// Of PKWARE's APPNOTE.TXT: 4.3.7, 4.3.12, 4.3.16.
constexpr uint32_t kLocalSignature = 0x04034b50, kEntrySignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr size_t kMaxComment = 65535;

Status MalformedArchive(const char* what) { return InvalidArgument("this is not an .npz file: ", what); }

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    table[i] = crc;
  }
  return table;
}

uint32_t Crc32(std::span<const std::byte> bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = ~0u;
  for (const std::byte byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint32_t>(byte)) & 0xFF];
  return ~crc;
}

// `count` bytes, the lowest first. REQUIRES: they lie within.
uint32_t Read(std::span<const std::byte> bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint32_t>(bytes[at + i]);
  return value;
}

// One file of the archive, as its directory describes it.
struct Entry {
  std::string name;
  uint32_t method, crc, bytes, header;
};

class Archive {
 public:
  explicit Archive(std::span<const std::byte> file) : file_(file) {}

  StatusOr<NpyArrays> Arrays() {
    SWIZZLE_RETURN_IF_ERROR(FindDirectory());
    NpyArrays arrays;
    for (uint32_t i = 0; i < entries_; ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(const Entry entry, TakeEntry());
      // One place of the file that many names share would be read into memory for each.
      if (entry.method == 0) declared_ += entry.bytes;  // others are refused
      if (declared_ > file_.size()) return MalformedArchive("its arrays are together longer than the file");
      if (!entry.name.ends_with(kEnding)) return MalformedArchive("it holds a file whose name does not end in .npy");
      const std::string name = entry.name.substr(0, entry.name.size() - kEnding.size());
      StatusOr<NpyArray> array = Open(entry);
      if (!array.ok()) return Annotate(array.status(), Concat("array ", QuotedName(name)));
      if (!arrays.emplace(name, *std::move(array)).second) {
        return InvalidArgument("array ", QuotedName(name), " stands in it twice");
      }
    }
    return arrays;
  }

 private:
  Status FindDirectory() {
    if (file_.size() < kEndBytes) return MalformedArchive("it is too short for an archive");
    const size_t first = file_.size() - std::min(file_.size(), kEndBytes + kMaxComment);
    size_t end = file_.size() - kEndBytes;
    while (end > first && Read(file_, end, 4) != kEndSignature) --end;
    if (Read(file_, end, 4) != kEndSignature) return MalformedArchive("it has no directory; it may be truncated");
    entries_ = Read(file_, end + 10, 2);
    at_ = Read(file_, end + 16, 4);
    if (entries_ == 0xFFFF || at_ == 0xFFFFFFFF) {
      return Unimplemented("the archive has more than 65,534 arrays or 4 GiB; save fewer arrays");
    }
    return {};
  }

  bool Has(size_t at, size_t bytes) const { return at <= file_.size() && bytes <= file_.size() - at; }

  StatusOr<Entry> TakeEntry() {
    if (!Has(at_, kEntryBytes) || Read(file_, at_, 4) != kEntrySignature)
      return MalformedArchive("its directory is damaged");
    Entry entry{
        {}, Read(file_, at_ + 10, 2), Read(file_, at_ + 16, 4), Read(file_, at_ + 24, 4), Read(file_, at_ + 42, 4)};
    const size_t name_bytes = Read(file_, at_ + 28, 2);
    const size_t rest = size_t{Read(file_, at_ + 30, 2)} + Read(file_, at_ + 32, 2);
    if (!Has(at_ + kEntryBytes, name_bytes + rest)) return MalformedArchive("its directory is damaged");
    const auto name = file_.subspan(at_ + kEntryBytes, name_bytes);
    entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    at_ += kEntryBytes + name_bytes + rest;
    return entry;
  }

  StatusOr<NpyArray> Open(const Entry& entry) const {
    if (entry.method != 0) return Unimplemented("it is compressed; save it with numpy.savez");
    if (!Has(entry.header, kLocalBytes) || Read(file_, entry.header, 4) != kLocalSignature) {
      return MalformedArchive("its directory does not fit its contents");
    }
    const size_t begin =
        size_t{entry.header} + kLocalBytes + Read(file_, entry.header + 26, 2) + Read(file_, entry.header + 28, 2);
    if (!Has(begin, entry.bytes)) return MalformedArchive("it is truncated");
    const auto bytes = file_.subspan(begin, entry.bytes);
    if (Crc32(bytes) != entry.crc) return InvalidArgument("its checksum is wrong: the file is damaged");
    return ParseNpy(bytes);
  }

  const std::span<const std::byte> file_;
  uint32_t entries_ = 0;
  size_t at_ = 0;        // in the directory
  size_t declared_ = 0;  // bytes of the entries so far
};

}  // namespace

StatusOr<NpyArrays> ParseNpz(std::span<const std::byte> file) { return Archive(file).Arrays(); }

StatusOr<NpyArrays> ReadNpz(const std::filesystem::path& file) {
  const StatusOr<std::vector<std::byte>> bytes = ReadFile(file, kMaxArchiveBytes);
  if (!bytes.ok()) return bytes.status();
  StatusOr<NpyArrays> arrays = ParseNpz(*bytes);
  if (!arrays.ok()) return Annotate(arrays.status(), file.string());
  return arrays;
}

}  // namespace swizzle
