#include "server/rpc/received_message.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace swizzle {

using google::protobuf::io::ZeroCopyInputStream;

ReceivedMessage::ReceivedMessage(const grpc::ByteBuffer& buffer) : buffer_(buffer) {
  if (!buffer.Valid()) return;  // a call that ended without a message
  compressed_ = Pieces(buffer).compressed();
  wire_bytes_ = static_cast<int64_t>(buffer.Length());
}

Status Parse(const ReceivedMessage& received, int64_t most, std::string_view type,
             google::protobuf::MessageLite& message) {
  int64_t read = 0;
  const bool parsed = received.Decompressed([&](ZeroCopyInputStream& in) {
    google::protobuf::io::LimitingInputStream limited(&in, most + 1);
    const bool good = message.ParseFromZeroCopyStream(&limited);
    read = limited.ByteCount();
    return good;
  });
  if (read > most) {
    return MakeError(StatusCode::kResourceExhausted, "the message has more than ", most,
                     " bytes, the most that this server takes of a ", type);
  }
  return parsed ? absl::OkStatus() : InvalidArgument("the message cannot be parsed as a ", type);
}

grpc::Slice SerializedSlice(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  static_cast<void>(message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin())));  // their end
  return slice;
}

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice = SerializedSlice(message);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::Status ToGrpc(const Status& status) noexcept {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  try {
    return {code, std::string(status.message())};
  } catch (...) {
    return {code, ""};  // with no message it needs no memory
  }
}

}  // namespace swizzle
