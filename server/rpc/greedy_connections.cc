#include "server/rpc/greedy_connections.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

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

// By the `data` of a server or a socket.
int64_t Open(const json& data, const std::string& what) {
  return Number(Member(data, (what + "Started").c_str())) - Number(Member(data, (what + "Succeeded").c_str())) -
         Number(Member(data, (what + "Failed").c_str()));
}

}  // namespace

void CancelledCalls::Add(const std::string& peer) {
  const Instant now = clock_.Now();
  const MutexLock lock(mutex_);
  if (now - second_ > absl::Seconds(1)) {
    second_ = now;
    calls_.clear();
  }
  if (++calls_[peer] == most_ + 1) greedy_.push_back(peer);
}

std::vector<std::string> CancelledCalls::TakeGreedy() {
  const MutexLock lock(mutex_);
  return std::exchange(greedy_, {});
}

void UnfinishedCalls::Begin(const std::string& peer) {
  const MutexLock lock(mutex_);
  if (++calls_[peer] == most_ + 1) greedy_.push_back(peer);
}

void UnfinishedCalls::End(const std::string& peer) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(peer);
  if (--found->second == 0) calls_.erase(found);
}

std::vector<std::string> UnfinishedCalls::TakeGreedy() {
  const MutexLock lock(mutex_);
  return std::exchange(greedy_, {});
}

namespace {

// Of one of channelz's sockets: "chttp2 ipv4:127.0.0.1:41234".
std::string PeerOf(const json& socket) {
  const std::string name = Text(Member(Member(socket, "ref"), "name"));
  return name.substr(std::min(name.size(), name.find(' ') + 1));
}

}  // namespace

std::string GreedyPeer(const std::string& socket_json, int64_t most) {
  const json socket = Member(json::parse(socket_json, nullptr, false), "socket");
  return Open(Member(socket, "data"), "streams") > most ? PeerOf(socket) : "";
}

void ConnectionWalk::GoOn(int64_t least, Look look) {
  const json servers = Member(Parsed(grpc_channelz_get_servers(0)), "server");
  for (const json& server : servers) {
    if (Open(Member(server, "data"), "calls") <= least) continue;
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

std::vector<std::string> OpenStreams::FindGreedy() {
  std::vector<std::string> greedy;
  walk_.GoOn(most_, [&](int64_t, const std::string& text) {
    std::string peer = GreedyPeer(text, most_);
    if (!peer.empty()) greedy.push_back(std::move(peer));
  });
  return greedy;
}

std::vector<std::string> SlowSenders::Find() {
  std::vector<std::string> slow;
  walk_.GoOn(0, [&](int64_t connection, const std::string& text) {
    std::string peer = Look(connection, text);
    if (!peer.empty()) slow.push_back(std::move(peer));
  });
  const Instant now = clock_.Now();
  std::erase_if(progress_, [&](const auto& entry) { return entry.second.looked_at + limits_.time < now; });
  return slow;
}

std::string SlowSenders::Look(int64_t connection, const std::string& text) {
  const json socket = Member(json::parse(text, nullptr, false), "socket");
  const json& data = Member(socket, "data");
  const int64_t received = Number(Member(data, "messagesReceived"));
  // Those that failed had a message, or will never have one.
  const int64_t unfinished = Number(Member(data, "streamsStarted")) - Number(Member(data, "streamsFailed")) - received;
  Progress& progress = progress_[connection];
  const Instant now = progress.looked_at = clock_.Now();
  progress.unfinished = std::min(progress.unfinished, unfinished);
  if (Open(data, "streams") == 0) progress.unfinished = unfinished;
  std::string peer = PeerOf(socket);
  const int64_t bytes = received_bytes_(peer);
  if (std::exchange(progress.received, received) != received || unfinished <= progress.unfinished) {
    progress.since = now;
    progress.bytes = bytes;
  }
  const bool slow = now - progress.since >= limits_.time || bytes - progress.bytes > limits_.bytes;
  return slow ? std::move(peer) : "";
}

}  // namespace swizzle
