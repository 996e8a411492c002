// Memory of a backend for tests of kernels: as large as asked for, with guard bytes behind it, all ones (NaN in every
// type) until filled. Where the host shares the backend's memory there is one copy, else two, which ToBackend and
// FromBackend bring into line. Movable, single-owner; the backend outlives it.
#ifndef SWIZZLE_TESTS_KERNELS_TEST_MEMORY_H_
#define SWIZZLE_TESTS_KERNELS_TEST_MEMORY_H_

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/base/half.h"
#include "kernels/base/integers.h"

namespace swizzle {

class TestMemory {
 public:
  TestMemory(Backend& backend, size_t bytes) : bytes_(bytes), host_(AllocateHost(bytes + kGuardBytes)) {
    Poison();
    if (!HasHostMemory(backend)) device_ = *backend.Allocate(bytes + kGuardBytes);
  }

  size_t bytes() const { return bytes_; }
  std::span<std::byte> host() { return {host_.get(), bytes_}; }
  // What a kernel is given.
  std::byte* data() { return device_ == nullptr ? host_.get() : device_->data(); }

  void Poison() { std::memset(host_.get(), 0xff, bytes_ + kGuardBytes); }
  void ToBackend(Stream& stream) {
    if (device_ != nullptr) stream.Copy(device_->data(), host_.get(), bytes_ + kGuardBytes);
  }
  // There once the stream is synchronised.
  void FromBackend(Stream& stream) {
    if (device_ != nullptr) stream.Copy(host_.get(), device_->data(), bytes_ + kGuardBytes);
  }
  bool GuardIntact() const {
    return std::all_of(host_.get() + bytes_, host_.get() + bytes_ + kGuardBytes,
                       [](std::byte byte) { return byte == std::byte{0xff}; });
  }

  // The host's copy, as elements of a type of 4 bytes, whose bits are kept, of a half type, which rounds, or of bytes,
  // which the values are.
  void Fill(std::span<const float> values, DType dtype) {
    if (ElementBytes(dtype) == sizeof(float)) {
      std::memcpy(host_.get(), values.data(), values.size_bytes());
      return;
    }
    if (dtype == DType::kUint8) {
      for (size_t i = 0; i < values.size(); ++i) host_.get()[i] = static_cast<std::byte>(values[i]);
      return;
    }
    auto* const halves = reinterpret_cast<uint16_t*>(host_.get());
    for (size_t i = 0; i < values.size(); ++i) {
      halves[i] = dtype == DType::kFloat16 ? HalfOfFloat(values[i]) : Bfloat16OfFloat(values[i]);
    }
  }
  std::vector<float> Values(DType dtype) const {
    std::vector<float> values(bytes_ / ElementBytes(dtype));
    if (ElementBytes(dtype) == sizeof(float)) {
      std::memcpy(values.data(), host_.get(), bytes_);
      return values;
    }
    if (dtype == DType::kUint8) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(host_.get()[i]);
      return values;
    }
    const auto* const halves = reinterpret_cast<const uint16_t*>(host_.get());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = dtype == DType::kFloat16 ? FloatOfHalf(halves[i]) : FloatOfBfloat16(halves[i]);
    }
    return values;
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  static constexpr size_t kGuardBytes = 4 * kBufferAlignment;
  static std::byte* AllocateHost(size_t bytes) {
    const size_t rounded = RoundUp(bytes, kBufferAlignment);
    return static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
  }

  size_t bytes_;
  std::unique_ptr<std::byte, Free> host_;
  std::unique_ptr<Buffer> device_;  // null where the host's copy is the backend's
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_TEST_MEMORY_H_
