#include "client/cli/cli.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/connection.h"
#include "client/cli/flags.h"
#include "client/client.h"

namespace swizzle::client {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done; 1 the server answered no; 2 the command line or a file that it names is wrong; 3 no server "
    "answered.";

// The flags of all commands, and what was asked for once they are parsed.
class CommandLine {
 public:
  // `server_flags` are those behind "--".
  explicit CommandLine(const std::vector<std::string>& server_flags)
      : app_("Talks to a Swizzle inference server, or to any server of the Open Inference Protocol.", "swizzle") {
    app_.footer(kFooter);
    app_.set_version_flag("--version", "swizzle " SWIZZLE_VERSION);
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.get_formatter()->column_width(34);
    AddConnection();
    app_.add_option("-o,--output", output_, "How to print: text or json")
        ->type_name("FORMAT")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json"}).description(""));
    AddServe(app_, connection_, server_flags, command_);
    AddQueries(app_, command_);
    AddObservation(app_, command_);
    AddControl(app_, command_);
    AddInfer(app_, command_);
    AddBench(app_, command_);
    AddClassify(app_, command_);
  }

  CLI::App& app() { return app_; }
  const Command& command() const { return command_; }
  bool json() const { return output_ == "json"; }
  const ConnectionFlags& connection() const { return connection_; }

 private:
  void AddConnection() {
    app_.add_option("--address", connection_.address, "Where the server listens")
        ->type_name("HOST:PORT")
        ->capture_default_str();
    app_.add_option("--timeout", connection_.timeout_s, "Seconds that a call may take")
        ->type_name("SECONDS")
        ->capture_default_str()
        ->check(IsPositive);
    app_.add_flag("--tls", connection_.tls, "Connect over TLS, to a server that the system's authorities know");
    const auto add_file = [&](const char* flag, std::string& file, const char* description) {
      return app_.add_option(flag, file, description)->type_name("FILE");
    };
    add_file("--tls-ca", connection_.tls_ca, "Connect over TLS, to a server that these authorities know; PEM");
    auto* certificate = add_file("--tls-cert", connection_.tls_certificate, "The certificate to show the server; PEM");
    auto* key = add_file("--tls-key", connection_.tls_key, "Its private key; PEM");
    certificate->needs(key);
    key->needs(certificate);
    add_file("--token-file", connection_.token_file, "Send the bearer token that this file holds");
  }

  CLI::App app_;
  ConnectionFlags connection_;
  std::string output_ = "text";
  Command command_;
};

// Errors are one line, whatever the server's message holds.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int ReportParseResult(const CLI::App& app, const CLI::ParseError& result, std::ostream& out, std::ostream& err) {
  if (result.get_exit_code() == 0) return app.exit(result, out, err);  // --help, --version
  err << "swizzle: " << OneLine(result.what()) << "; see --help\n";
  return kExitUsage;
}

// Where the "--" of serve stands, behind which flags of the server follow; argc where there is none.
int ServerFlagsAt(int argc, const char* const* argv) {
  const auto* const end = argv + argc;
  const auto* const at = std::find(argv, end, std::string_view("--"));
  return std::find(argv, at, std::string_view("serve")) == at ? argc : static_cast<int>(at - argv);
}

}  // namespace

int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, Watched watched) {
  const int end = ServerFlagsAt(argc, argv);
  const std::vector<std::string> server_flags(argv + std::min(end + 1, argc), argv + argc);
  CommandLine line(server_flags);
  try {
    line.app().parse(end, argv);
  } catch (const CLI::ParseError& result) {
    return ReportParseResult(line.app(), result, out, err);
  }
  Terminal terminal{out, err, watched.err, line.json(), watched.out};
  const absl::StatusOr<ClientOptions> connection = ReadConnection(line.connection());
  absl::Status status = connection.status();
  if (status.ok()) status = line.command()(*connection, terminal);
  if (!status.ok()) err << "swizzle: " << OneLine(std::string(status.message())) << '\n';
  return ExitCodeOf(status);
}

}  // namespace swizzle::client
