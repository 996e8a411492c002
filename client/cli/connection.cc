#include "client/cli/connection.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"

namespace swizzle::client {
namespace {

absl::Status ReadText(const std::string& file, std::string& text) {
  if (file.empty()) return absl::OkStatus();
  std::ifstream in(file, std::ios::binary);
  if (in) text.assign(std::istreambuf_iterator<char>(in), {});
  if (in.good() || in.eof()) return absl::OkStatus();
  return UsageError(absl::StrCat("cannot read ", file, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<ClientOptions> ReadConnection(const ConnectionFlags& flags) {
  ClientOptions options{.address = flags.address, .timeout = absl::Seconds(flags.timeout_s)};
  options.tls = flags.tls || !flags.tls_ca.empty() || !flags.tls_certificate.empty();
  const std::pair<const std::string&, std::string&> files[] = {{flags.tls_ca, options.tls_ca},
                                                               {flags.tls_certificate, options.tls_certificate},
                                                               {flags.tls_key, options.tls_key},
                                                               {flags.token_file, options.token}};
  for (const auto& [file, text] : files) {
    if (const absl::Status read = ReadText(file, text); !read.ok()) return read;
  }
  absl::StripAsciiWhitespace(&options.token);
  const bool one_word = options.token.find_first_of(" \t\r\n") == std::string::npos;
  if (!flags.token_file.empty() && (options.token.empty() || !one_word)) {
    return UsageError(absl::StrCat(flags.token_file, " has to hold one token, and nothing else"));
  }
  return options;
}

}  // namespace swizzle::client
