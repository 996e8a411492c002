// What clients may ask for, in classes, and the class of everything that there is to ask: each RPC by its name, and
// each path of HTTP. What has no class is refused. Functions only; thread-safe.
#ifndef SWIZZLE_SERVER_SECURITY_ACCESS_CLASS_H_
#define SWIZZLE_SERVER_SECURITY_ACCESS_CLASS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace swizzle {

enum class AccessClass : uint8_t {
  kInfer,
  kMetadata,    // what models there are, what they take, how they do
  kControl,     // what changes the server
  kMetrics,     // those of all models
  kReflection,  // which RPCs there are
  kProbe,       // whether the server lives and is ready: nobody needs a token for that
};

// In the enum's order, those that tokens are given.
inline constexpr std::array<std::string_view, 5> kAccessClassNames = {"infer", "metadata", "control", "metrics",
                                                                      "reflection"};

// Where a call came in.
enum class ListenerKind : uint8_t {
  kPublic,
  kControl,  // of --control-address or --http-control-address
};

struct AccessRule {
  std::string_view name;  // "/package.Service/Method", or a path of HTTP, with {model} for a name
  AccessClass needs;
  bool control_listener_only = false;
};

// All there are; none for what has no class.
std::optional<AccessRule> FindAccessRule(std::string_view name);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SECURITY_ACCESS_CLASS_H_
