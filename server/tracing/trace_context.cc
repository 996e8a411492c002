#include "server/tracing/trace_context.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace swizzle {
namespace {

// W3C: at least so much of it has to be passed on.
constexpr size_t kMostState = 512;

// SplitMix64 (Steele, Lea and Flood, 2014): as fast as an addition, and good enough for ids and shares.
uint64_t RandomBits() {
  thread_local uint64_t state = (uint64_t{std::random_device()()} << 32) ^ std::random_device()();
  uint64_t bits = state += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

template <typename Id>
Id NewId() {
  Id id = {};
  static_assert(sizeof(id) % sizeof(uint64_t) == 0);
  for (size_t at = 0; at < id.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = std::max<uint64_t>(RandomBits(), 1);
    std::memcpy(id.data() + at, &bits, sizeof(bits));
  }
  return id;
}

// -1 for what is no digit; W3C allows lower case only.
int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ParseHex(std::string_view text, std::span<uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = Digit(text[2 * i]), low = Digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(16 * high + low);
  }
  return true;
}

bool IsZero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::optional<TraceContext> ParseTraceContext(std::string_view traceparent, std::string_view tracestate) {
  // version "-" trace "-" span "-" flags; later versions may go on behind another "-".
  constexpr size_t kTrace = 3, kSpan = 36, kFlags = 53, kEnd = 55;
  if (traceparent.size() < kEnd) return std::nullopt;
  for (const size_t dash : {kTrace - 1, kSpan - 1, kFlags - 1}) {
    if (traceparent[dash] != '-') return std::nullopt;
  }
  TraceContext context;
  std::array<uint8_t, 1> version, flags;
  const bool parsed = ParseHex(traceparent.substr(0, 2), version) &&
                      ParseHex(traceparent.substr(kTrace), context.trace) &&
                      ParseHex(traceparent.substr(kSpan), context.span) && ParseHex(traceparent.substr(kFlags), flags);
  if (!parsed || version[0] == 0xff || IsZero(context.trace) || IsZero(context.span)) return std::nullopt;
  if (traceparent.size() > kEnd && (version[0] == 0 || traceparent[kEnd] != '-')) return std::nullopt;
  context.sampled = (flags[0] & 1) != 0;
  if (tracestate.size() <= kMostState && IsPrintable(tracestate)) context.state = tracestate;
  return context;
}

TraceId NewTraceId() { return NewId<TraceId>(); }
SpanId NewSpanId() { return NewId<SpanId>(); }

bool Chance(double share) {
  if (share <= 0.0) return false;
  return static_cast<double>(RandomBits() >> 11) * 0x1p-53 < share;
}

std::string Hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace swizzle
