#include "model_loader/onnx/external_data.h"

#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <numeric>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/load/loader.h"
#include "model_loader/onnx/onnx_reader.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using testing::OnnxBuilder;
using Keys = std::vector<std::pair<std::string, std::string>>;

void SetExternal(const Keys& keys, onnx::TensorProto& proto) {
  proto.clear_raw_data();
  proto.clear_external_data();
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : keys) {
    auto& entry = *proto.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
}

// One Gemm whose weight 'w' [4,3] is in a file as `keys` say.
OnnxBuilder ModelWith(const Keys& keys) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Counting("w", {4, 3}).Node("Gemm", {"x", "w"}, {"y"}).Output("y");
  SetExternal(keys, *builder.graph().mutable_initializer(0));
  return builder;
}

const Tensor& ConstantOf(const Graph& graph, const std::string& name) {
  for (const Value& value : graph.values) {
    if (value.name == name) return *value.constant;
  }
  SWIZZLE_CHECK(false);
}

// A folder with `data`, which holds the floats 0 to 15, and with what a model might be made to reach through it.
class ExternalDataTest : public ::testing::Test {
 protected:
  ExternalDataTest() {
    fs::create_directories(folder_ / "model" / "deep/er");
    WriteFloats("data");
    WriteFloats("deep/er/data");
    WriteFloats("../outside");
    WriteFloats("shared");
    fs::create_hard_link(File("shared"), File("shared_too"));
    fs::create_symlink("data", File("link"));
    fs::create_symlink("../outside", File("link_outside"));
    fs::create_symlink("nothing", File("link_nowhere"));
    fs::create_directory_symlink("deep", File("linked_folder"));
    fs::create_directory_symlink("..", File("linked_parent"));
    SWIZZLE_CHECK(mkfifo(File("pipe").c_str(), 0600) == 0);
    options_.external_folder.path = folder_ / "model";
  }

  fs::path File(const std::string& name) const { return folder_ / "model" / name; }

  void WriteFloats(const std::string& name) const {
    std::vector<float> floats(16);
    std::iota(floats.begin(), floats.end(), 0.0f);
    std::ofstream(File(name), std::ios::binary).write(reinterpret_cast<const char*>(floats.data()), 64);
  }

  StatusOr<Graph> Read(const OnnxBuilder& builder) const { return ReadOnnx(builder.Bytes(), options_); }
  StatusOr<Graph> Read(const Keys& keys) const { return Read(ModelWith(keys)); }

  TemporaryFolder folder_;
  ReadOptions options_;
};

TEST_F(ExternalDataTest, ReadsTheRangeThatTheModelNames) {
  for (const Keys& keys : {Keys{{"location", "data"}, {"offset", "8"}, {"length", "48"}, {"checksum", "x"}},
                           Keys{{"offset", "8"}, {"location", "./data"}},
                           Keys{{"location", "deep/er/data"}, {"length", "48"}, {"offset", "8"}}}) {
    const auto graph = Read(keys);
    ASSERT_THAT(graph, IsOk());
    const Tensor& weight = ConstantOf(*graph, "w");
    EXPECT_EQ(weight.shape, (Shape{4, 3}));
    EXPECT_EQ(weight.floats().front(), 2.0f);
    EXPECT_EQ(weight.floats().back(), 13.0f);
  }
  const auto graph = Read({{"location", "data"}});
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(ConstantOf(*graph, "w").floats().front(), 0.0f);
}

TEST_F(ExternalDataTest, ReadsSeveralTensorsFromSeveralFiles) {
  OnnxBuilder builder = ModelWith({{"location", "data"}});
  builder.Counting("b", {3});
  SetExternal({{"location", "deep/er/data"}, {"offset", "4"}}, *builder.graph().mutable_initializer(1));
  builder.Counting("c", {1});
  SetExternal({{"location", "data"}, {"offset", "60"}}, *builder.graph().mutable_initializer(2));
  const auto graph = Read(builder);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(ConstantOf(*graph, "b").floats()[0], 1.0f);
  EXPECT_EQ(ConstantOf(*graph, "c").floats()[0], 15.0f);
}

TEST_F(ExternalDataTest, ReadsAttributesAndSparseInitializers) {
  std::ofstream(File("indices"), std::ios::binary).write("\0\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0", 16);
  OnnxBuilder builder = ModelWith({{"location", "data"}});
  builder.Node("Constant", {}, {"k"}, {{"value", Tensor::Floats({1}, std::vector<float>{1})}});
  SetExternal({{"location", "data"}, {"offset", "12"}},
              *builder.graph().mutable_node(1)->mutable_attribute(0)->mutable_t());
  builder.Sparse("s", {2, 3}, {1, 2}, {0, 5});
  auto& sparse = *builder.graph().mutable_sparse_initializer(0);
  SetExternal({{"location", "data"}, {"offset", "20"}}, *sparse.mutable_values());
  SetExternal({{"location", "indices"}}, *sparse.mutable_indices());
  const auto graph = Read(builder);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(std::get<Tensor>(graph->nodes[1].attributes.at("value")).floats()[0], 3.0f);
  EXPECT_EQ(ConstantOf(*graph, "s"), Tensor::Floats({2, 3}, std::vector<float>{5, 0, 0, 0, 0, 6}));
}

TEST_F(ExternalDataTest, TheFolderItselfMayBeALink) {
  fs::create_directory_symlink("model", folder_ / "version");
  options_.external_folder.path = folder_ / "version";
  EXPECT_THAT(Read({{"location", "data"}}), IsOk());
}

TEST_F(ExternalDataTest, LoadModelLooksBesideTheModel) {
  const auto write = [&](const std::string& name) {
    const std::vector<std::byte> bytes = ModelWith({{"location", "data"}}).Bytes();
    std::ofstream(File(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write("model.onnx");
  EXPECT_THAT(LoadModel(File("model.onnx")), IsOk());
  EXPECT_THAT(LoadRunnableModel(File("model.onnx"), {.external_bytes = 48}), IsOk());
  EXPECT_THAT(
      LoadRunnableModel(File("model.onnx"), {.external_bytes = 47}),
      IsError(kInvalid, "model.onnx: initializer 'w' has 48 bytes of external data, which takes the model above"));
  write("deep/model.onnx");
  EXPECT_THAT(
      LoadModel(File("deep/model.onnx")),
      IsError(StatusCode::kNotFound, "deep/model.onnx: initializer 'w': its external file 'data' is not there"));
  EXPECT_EQ(ReadOptionsFor("model.onnx").external_folder.path, ".");
}

TEST_F(ExternalDataTest, MayBeABlobOfTheModelsStore) {
  const std::string model(64, 'a'), data(40, 'b');
  fs::create_directories(folder_ / "blobs");
  fs::create_directories(folder_ / "snapshots/cafe");
  const std::vector<std::byte> bytes = ModelWith({{"location", "model.onnx_data"}}).Bytes();
  std::ofstream(folder_ / "blobs" / model, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  fs::rename(File("data"), folder_ / "blobs" / data);
  fs::create_symlink("../../blobs/" + model, folder_ / "snapshots/cafe/model.onnx");
  fs::create_symlink("../../blobs/" + data, folder_ / "snapshots/cafe/model.onnx_data");
  EXPECT_THAT(LoadModel(folder_ / "snapshots/cafe/model.onnx"), IsOk());
}

TEST_F(ExternalDataTest, IsRefusedWhereTheModelHasNoFolder) {
  EXPECT_THAT(ModelWith({{"location", "data"}}).Read(),
              IsError(kUnsupported, "'w' lies in an external file; save the"));
}

TEST_F(ExternalDataTest, SaysWhereAPointerFileStandsForIt) {
  std::ofstream(File("data")) << "version https://git-lfs.github.com/spec/v1\n";
  EXPECT_THAT(Read({{"location", "data"}}),
              IsError(kInvalid, "initializer 'w': its external file 'data' is a pointer file of Git LFS"));
}

TEST_F(ExternalDataTest, KeepsLimits) {
  OnnxBuilder builder = ModelWith({{"location", "data"}});
  builder.Counting("b", {3});
  SetExternal({{"location", "data"}}, *builder.graph().mutable_initializer(1));
  options_.max_external_bytes = 60;
  EXPECT_THAT(Read(builder), IsOk());
  options_.max_external_bytes = 59;
  EXPECT_THAT(Read(builder), IsError(kInvalid, "'b' has 12 bytes of external data, which takes the model above"));
  options_.max_tensor_bytes = 47;
  EXPECT_THAT(Read(builder), IsError(kInvalid, "'w' has 12 elements of FP32; the limit is 47 bytes"));
}

TEST_F(ExternalDataTest, RefusesDataInTwoPlaces) {
  OnnxBuilder raw = ModelWith({{"location", "data"}}), typed = raw, unannounced = raw, segment = raw;
  const auto weight = [](OnnxBuilder& builder) { return builder.graph().mutable_initializer(0); };
  weight(raw)->set_raw_data(std::string(48, '\0'));
  EXPECT_THAT(Read(raw), IsError(kInvalid, "'w' has data both in an external file and inside"));
  weight(typed)->add_float_data(1);
  EXPECT_THAT(Read(typed), IsError(kInvalid, "'w' has data both in an external file and inside"));
  weight(unannounced)->clear_data_location();
  EXPECT_THAT(Read(unannounced), IsError(kInvalid, "'w' names external data, but its data_location is not EXTERNAL"));
  weight(segment)->mutable_segment()->set_begin(0);
  EXPECT_THAT(Read(segment), IsError(kUnsupported, "segments"));
}

struct Fault {
  const char* name;
  Keys keys;
  StatusCode code;
  const char* message;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class ExternalDataFaultTest : public ExternalDataTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(ExternalDataFaultTest, IsRefused) {
  const Fault& fault = GetParam();
  const auto graph = Read(fault.keys);
  EXPECT_THAT(graph, IsError(fault.code, fault.message));
  EXPECT_THAT(graph, IsError(fault.code, "initializer 'w'"));
}

Fault Location(const char* name, const std::string& location, const char* message) {
  return {name, {{"location", location}}, kInvalid, message};
}

Fault Bytes(const char* name, const char* key, const char* value, const char* message) {
  return {name, {{"location", "data"}, {key, value}}, kInvalid, message};
}

const Fault kFaults[] = {
    {"NoKeys", {}, kInvalid, "does not say in which"},
    {"NoLocation", {{"offset", "8"}}, kInvalid, "does not say in which"},
    {"LocationTwice", {{"location", "data"}, {"location", "data"}}, kInvalid, "the key 'location'"},
    {"UnknownKey", {{"location", "data"}, {"basepath", "/"}}, kUnsupported, "the key 'basepath'"},
    {"KeyNotPrintable", {{"location", "data"}, {"a\nb", "/"}}, kInvalid, "a key of its external data has a name"},
    {"Missing", {{"location", "nothing"}}, StatusCode::kNotFound, "'nothing' is not there"},
    {"MissingFolder", {{"location", "nowhere/data"}}, StatusCode::kNotFound, "'nowhere/data' is not there"},
    Location("EmptyLocation", "", "does not say in which"),
    Location("Absolute", "/etc/hostname", "'/etc/hostname' is not below the model's folder"),
    Location("Parent", "../outside", "is not below the model's folder"),
    Location("ParentInside", "deep/../data", "is not below the model's folder"),
    Location("ParentAlone", "..", "is not below the model's folder"),
    Location("ParentLast", "deep/..", "is not below the model's folder"),
    Location("FolderItself", ".", "is not below the model's folder"),
    Location("EmptyComponent", "deep//er/data", "is not below the model's folder"),
    Location("SlashLast", "data/", "is not below the model's folder"),
    Location("Control", "data\n", "its external file has a name that is not printable"),
    Location("Zero", std::string("data\0x", 6), "its external file has a name that is not printable"),
    Location("NotUtf8", "\xff", "its external file has a name that is not printable"),
    Location("TooLong", std::string(1025, 'x'), "1025 bytes"),
    Location("Link", "link", "'link' is, or lies behind, a symbolic link"),
    Location("LinkOutside", "link_outside", "symbolic link"),
    Location("LinkNowhere", "link_nowhere", "symbolic link"),
    Location("LinkedFolder", "linked_folder/er/data", "symbolic link"),
    Location("LinkedParent", "linked_parent/outside", "symbolic link"),
    Location("HardLink", "shared", "'shared' has other names (hard links)"),
    Location("Folder", "deep", "'deep' is not a regular file"),
    Location("Pipe", "pipe", "'pipe' is not a regular file"),
    Location("BelowAFile", "data/data", "something that is no folder"),
    Bytes("OffsetNegative", "offset", "-8", "the offset of its external data is not a number"),
    Bytes("OffsetEmpty", "offset", "", "the offset of its external data is not a number"),
    Bytes("OffsetSigned", "offset", "+8", "the offset of its external data is not a number"),
    Bytes("OffsetHexadecimal", "offset", "0x8", "the offset of its external data is not a number"),
    Bytes("OffsetWithSpace", "offset", "8 ", "the offset of its external data is not a number"),
    Bytes("OffsetOverflows", "offset", "9223372036854775808", "the offset of its external data is not a number"),
    Bytes("OffsetOverflowsWithLength", "offset", "9223372036854775807", "which has only 64"),
    Bytes("OffsetPastTheEnd", "offset", "65", "48 bytes at offset 65 of its external file 'data', which has only 64"),
    Bytes("TooFarForTheLength", "offset", "17", "48 bytes at offset 17"),
    Bytes("LengthNegative", "length", "-1", "the length of its external data is not a number"),
    Bytes("LengthShort", "length", "47", "'w' has 47 bytes of external data, but 48"),
    Bytes("LengthLong", "length", "49", "'w' has 49 bytes of external data, but 48"),
    Bytes("LengthHuge", "length", "9223372036854775807", "bytes of external data, but 48"),
};

INSTANTIATE_TEST_SUITE_P(Faults, ExternalDataFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST(ExternalElementsTest, StandInPlaceOfFiles) {
  ReadOptions options;
  options.external_elements = [](const std::string& location, int64_t bytes) -> StatusOr<std::vector<std::byte>> {
    if (location != "7") return InvalidArgument("no such elements");
    return std::vector<std::byte>(static_cast<size_t>(bytes), std::byte{1});
  };
  const auto read = [&](const Keys& keys) { return ReadOnnx(ModelWith(keys).Bytes(), options); };
  const auto graph = read({{"location", "7"}});
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(ConstantOf(*graph, "w").bytes, std::vector<std::byte>(48, std::byte{1}));
  EXPECT_THAT(read({{"location", "../7"}}), IsError(kInvalid, "initializer 'w': no such elements"));
  EXPECT_THAT(read({{"location", "7"}, {"offset", "4"}}), IsError(kInvalid, "'w' begins within the elements '7'"));
  EXPECT_THAT(read({{"location", "7"}, {"length", "4"}}), IsError(kInvalid, "has 4 bytes of external data"));
  options.max_external_bytes = 47;
  EXPECT_THAT(read({{"location", "7"}}), IsError(kInvalid, "takes the model above its limit"));
}

}  // namespace
}  // namespace swizzle
