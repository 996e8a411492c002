// Text from a server, or from a model's file, as it may stand on a terminal and in what is pasted into one.
#ifndef SWIZZLE_CLIENT_CLI_PRINTABLE_H_
#define SWIZZLE_CLIENT_CLI_PRINTABLE_H_

#include <string>

namespace swizzle::client {

// With a question mark for each character of control: such move the cursor, or end the line of a comment.
inline std::string Printable(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  }
  return text;
}

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_PRINTABLE_H_
