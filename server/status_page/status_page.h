// The page at / of the metrics' address, for people who look: what serves, how, and how fast, drawn by scripts of its
// own from /status and /metrics.
#ifndef SWIZZLE_SERVER_STATUS_PAGE_STATUS_PAGE_H_
#define SWIZZLE_SERVER_STATUS_PAGE_STATUS_PAGE_H_

#include <string>

namespace swizzle {

// Holds no data.
std::string StatusPage();

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_STATUS_PAGE_STATUS_PAGE_H_
