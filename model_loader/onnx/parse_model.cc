#include "model_loader/onnx/parse_model.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "model_loader/files/read_file.h"
#include "model_loader/onnx/proto_values.h"

namespace swizzle {
namespace {

// Graphs within nodes lie in each other so deep: three messages each, graph, node and attribute, and a few for what the
// innermost has. What parses only with the second limit is told apart from garbage.
constexpr int kMaxNestedGraphs = 64;
constexpr int kMaxNesting = 3 * kMaxNestedGraphs + 16, kMostNesting = 4096;

using google::protobuf::io::ZeroCopyInputStream;

bool ParsesWithin(int nesting, ZeroCopyInputStream& bytes, onnx::ModelProto& model) {
  google::protobuf::io::CodedInputStream stream(&bytes);
  stream.SetRecursionLimit(nesting);
  return model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

// rewound: the stream of all bytes, from their beginning. head: the first of them.
template <typename Rewound>
StatusOr<onnx::ModelProto> ParseStream(const Rewound& rewound, std::span<const std::byte> head) {
  onnx::ModelProto model;
  if (!ParsesWithin(kMaxNesting, *rewound(), model)) {
    model.Clear();
    if (!ParsesWithin(kMostNesting, *rewound(), model)) return NotOnnx(head, ": it does not parse as protobuf");
    return Unimplemented("the model's graphs lie within each other (If, Loop, Scan) deeper than ", kMaxNestedGraphs,
                         " nodes, which is the limit");
  }
  if (!model.has_graph() || !model.has_ir_version()) return NotOnnx(head, ": it has no graph or no IR version");
  return model;
}

StatusOr<onnx::ModelProto> ParseBytes(std::span<const std::byte> bytes, int64_t most_bytes) {
  if (static_cast<int64_t>(bytes.size()) > most_bytes) {
    return InvalidArgument("the ONNX model has ", bytes.size(), " bytes; the limit is ", most_bytes);
  }
  const auto rewound = [&] {
    return std::make_unique<google::protobuf::io::ArrayInputStream>(bytes.data(), static_cast<int>(bytes.size()));
  };
  return ParseStream(rewound, bytes);
}

StatusOr<onnx::ModelProto> ParseFile(const std::filesystem::path& file, int64_t most_bytes) {
  constexpr int kBlockBytes = 1 << 20;
  constexpr int64_t kHeadBytes = 1 << 12;
  SWIZZLE_ASSIGN_OR_RETURN(FileStream opened, OpenFile(file, most_bytes));
  std::vector<std::byte> head(static_cast<size_t>(std::min(opened.bytes, kHeadBytes)));
  opened.stream.read(reinterpret_cast<char*>(head.data()), static_cast<std::streamsize>(head.size()));
  const auto rewound = [&] {
    opened.stream.clear();
    opened.stream.seekg(0);
    return std::make_unique<google::protobuf::io::IstreamInputStream>(&opened.stream, kBlockBytes);
  };
  StatusOr<onnx::ModelProto> model = ParseStream(rewound, head);
  opened.stream.clear();
  opened.stream.seekg(0, std::ios::end);
  if (opened.stream.tellg() != opened.bytes) return ChangedWhileRead();
  return model;
}

}  // namespace

StatusOr<onnx::ModelProto> ParseModel(const OnnxSource& source, int64_t most_bytes) {
  return source.file() ? ParseFile(*source.file(), most_bytes) : ParseBytes(source.bytes(), most_bytes);
}

}  // namespace swizzle
