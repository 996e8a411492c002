#include "server/rpc/channelz.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace swizzle {
namespace {

using nlohmann::json;

constexpr intptr_t kConnectionsAtOnce = 256;

struct GprFree {
  void operator()(char* text) const { gpr_free(text); }
};

// What channelz answers; null where it has no answer.
json Parsed(char* text) {
  const std::unique_ptr<char, GprFree> owned(text);
  if (text == nullptr) return nullptr;
  return json::parse(text, nullptr, false);
}

// A member of an object; null where there is none.
const json& Member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

// Numbers of 64 bits are text in protobuf's JSON; what is 0 is left out.
int64_t Number(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  int64_t number = 0;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number;
}

std::string Text(const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

// By the `data` of a server or a socket; `what` they are of: "calls".
ChannelzCalls CallsOf(const json& data, const std::string& what) {
  const auto number = [&](const char* which) { return Number(Member(data, (what + which).c_str())); };
  return {number("Started"), number("Succeeded"), number("Failed")};
}

json Servers() { return Member(Parsed(grpc_channelz_get_servers(0)), "server"); }

}  // namespace

ChannelzConnection ParseConnection(const std::string& text) {
  const json socket = Member(json::parse(text, nullptr, false), "socket");
  const json& data = Member(socket, "data");
  std::string name = Text(Member(Member(socket, "ref"), "name"));  // "chttp2 ipv4:127.0.0.1:41234"
  name.erase(0, std::min(name.size(), name.find(' ') + 1));
  return {std::move(name), CallsOf(data, "streams"), Number(Member(data, "messagesReceived")),
          Number(Member(data, "messagesSent"))};
}

ChannelzCalls CountCalls() {
  ChannelzCalls all;
  for (const json& server : Servers()) {
    const ChannelzCalls calls = CallsOf(Member(server, "data"), "calls");
    all.started += calls.started;
    all.succeeded += calls.succeeded;
    all.failed += calls.failed;
  }
  return all;
}

void ConnectionWalk::GoOn(int64_t least, Look look) {
  for (const json& server : Servers()) {
    if (CallsOf(Member(server, "data"), "calls").open() <= least) continue;
    const int64_t id = Number(Member(Member(server, "ref"), "serverId"));
    int64_t& next = next_[id];
    const json page = Parsed(grpc_channelz_get_server_sockets(id, next, kConnectionsAtOnce));
    const json sockets = Member(page, "socketRef");
    for (const json& socket : sockets) {
      const int64_t socket_id = Number(Member(socket, "socketId"));
      next = socket_id + 1;
      const std::unique_ptr<char, GprFree> text(grpc_channelz_get_socket(socket_id));
      if (text != nullptr) look(socket_id, text.get());
    }
    if (Member(page, "end") == json(true)) next = 0;
  }
}

}  // namespace swizzle
