// Walks the fields of a protobuf message by its bytes (https://protobuf.dev/programming-guides/encoding). Internal to
// model_loader/text. Thread-compatible; views the bytes.
//
// Sentencepiece's models are read by it: libsentencepiece brings symbols of a protobuf of its own, which a process that
// has libprotobuf, as ours have, ends of.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_PROTOBUF_FIELDS_H_
#define SWIZZLE_MODEL_LOADER_TEXT_PROTOBUF_FIELDS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace swizzle::text {

class ProtobufFields {
 public:
  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;           // of a varint, or of a fixed number its bits
    std::string_view bytes = {};  // of a string or message

    bool flag() const { return value != 0; }
    float real() const { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
  };

  explicit ProtobufFields(std::string_view bytes) : bytes_(bytes) {}

  // The next field. False at the end, and where the message is malformed.
  bool Next(Field& field) {
    uint64_t tag = 0;
    if (bytes_.empty()) return false;
    well_formed_ = ReadVarint(tag) && tag >> 3 != 0 && ReadValue(tag & 7, field);
    field.number = tag >> 3;
    return well_formed_;
  }
  // Whether it was well-formed up to here.
  bool well_formed() const { return well_formed_; }

 private:
  bool ReadVarint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return false;
      const auto byte = static_cast<unsigned char>(bytes_[0]);
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool ReadFixed(size_t size, uint64_t& value) {
    if (bytes_.size() < size) return false;
    value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes_[i]);
    bytes_.remove_prefix(size);
    return true;
  }

  bool ReadBytes(std::string_view& bytes) {
    uint64_t size = 0;
    if (!ReadVarint(size) || size > bytes_.size()) return false;
    bytes = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }

  // Groups, which nobody writes any more, are malformed.
  bool ReadValue(uint64_t type, Field& field) {
    switch (type) {
      case 0:
        return ReadVarint(field.value);
      case 1:
        return ReadFixed(8, field.value);
      case 2:
        return ReadBytes(field.bytes);
      case 5:
        return ReadFixed(4, field.value);
      default:
        return false;
    }
  }

  std::string_view bytes_;
  bool well_formed_ = true;
};

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_PROTOBUF_FIELDS_H_
