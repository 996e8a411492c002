// A message as gRPC hands it over when it is told to leave messages alone: bytes in pieces, perhaps compressed.
//
// gRPC would decompress a message before anybody could look at it, however large it then is: 2.5 MiB become 2.5 GiB.
// The server tells it not to (GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION), and reads compressed messages as a stream,
// which whoever reads may leave.
#ifndef SWIZZLE_SERVER_RPC_RECEIVED_MESSAGE_H_
#define SWIZZLE_SERVER_RPC_RECEIVED_MESSAGE_H_

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

// Thread-compatible. The buffer outlives it.
class ReceivedMessage {
 public:
  explicit ReceivedMessage(const grpc::ByteBuffer& buffer);

  // Frees the bytes: there is nothing to read any more.
  void Drop() { const_cast<grpc::ByteBuffer&>(buffer_).Clear(); }

  bool compressed() const { return compressed_; }
  int64_t wire_bytes() const { return wire_bytes_; }

  // Calls read(google::protobuf::io::ZeroCopyInputStream&), from the first byte of what was sent, decompressed.
  template <typename Read>
  auto Decompressed(Read read) const {
    Pieces pieces(buffer_);
    if (!compressed_) return read(static_cast<google::protobuf::io::ZeroCopyInputStream&>(pieces));
    google::protobuf::io::GzipInputStream inflated(&pieces);  // gzip and deflate, whichever it is
    return read(static_cast<google::protobuf::io::ZeroCopyInputStream&>(inflated));
  }

 private:
  class Pieces final : public grpc::ProtoBufferReader {
   public:
    // Reading changes nothing in a buffer.
    explicit Pieces(const grpc::ByteBuffer& buffer) : ProtoBufferReader(const_cast<grpc::ByteBuffer*>(&buffer)) {}
    bool compressed() { return reader()->buffer_in->data.raw.compression != GRPC_COMPRESS_NONE; }
  };

  const grpc::ByteBuffer& buffer_;
  bool compressed_ = false;
  int64_t wire_bytes_ = 0;
};

// Parses a message of which at most `most` bytes are read. RESOURCE_EXHAUSTED if it has more, INVALID_ARGUMENT if it
// cannot be parsed as `type`.
Status Parse(const ReceivedMessage& received, int64_t most, std::string_view type,
             google::protobuf::MessageLite& message);

// The same code and message, or none where there is no memory for it: threads end calls with it that nothing catches.
grpc::Status ToGrpc(const Status& status) noexcept;

// As one piece.
grpc::Slice SerializedSlice(const google::protobuf::MessageLite& message);
grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_RECEIVED_MESSAGE_H_
