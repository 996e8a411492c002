// A message in one line of protobuf's text format. Message::ShortDebugString is no longer the same from run to run.
#ifndef SWIZZLE_TESTS_SUPPORT_MESSAGE_TEXT_H_
#define SWIZZLE_TESTS_SUPPORT_MESSAGE_TEXT_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

namespace swizzle {

inline std::string OneLineOf(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  static_cast<void>(printer.PrintToString(message, &text));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SUPPORT_MESSAGE_TEXT_H_
