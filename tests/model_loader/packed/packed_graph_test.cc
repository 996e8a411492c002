// Graphs in packed files: every bit of their tensors comes back, and what does not fit is refused.
#include "model_loader/packed/packed_graph.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "model_loader/packed/file_layout.h"
#include "model_loader/packed/packed_reader.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;

constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;

// Random bytes, of which elements are `common` at this share.
std::vector<std::byte> Draw(int64_t elements, int32_t element_bytes, double share, uint8_t common, uint32_t seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution is_common(share);
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < elements; ++i) {
    const bool filled = is_common(random);
    for (int32_t byte = 0; byte < element_bytes; ++byte) {
      bytes.push_back(static_cast<std::byte>(filled ? common : random() % 256));
    }
  }
  return bytes;
}

TEST(CompressedElementsTest, KeepsEveryBit) {
  for (const int32_t element_bytes : {1, 2, 4, 8}) {
    for (const int64_t elements : {0, 1, 63, 64, 65, 1000}) {
      for (const double share : {0.0, 0.5, 0.9, 1.0}) {
        const auto bytes = Draw(elements, element_bytes, share, 0, 3);
        const CompressedElements made = Compressed(bytes, element_bytes);
        ASSERT_THAT(made.Validate(), IsOk());
        EXPECT_EQ(made.Expanded(), bytes);
        EXPECT_LE(made.stored_bytes(), std::ssize(bytes));
      }
    }
  }
}

TEST(CompressedElementsTest, LeavesOutTheMostCommon) {
  EXPECT_NEAR(static_cast<double>(Compressed(Draw(6400, 4, 0.9, 0, 1), 4).stored_bytes()) / (6400 * 4), 0.1 + 1.0 / 32,
              0.01);
  const auto zero_points = Draw(6400, 1, 0.9, 128, 1);  // of a quantised weight
  const CompressedElements made = Compressed(zero_points, 1);
  EXPECT_EQ(made.filler, 128u);
  EXPECT_NEAR(static_cast<double>(made.stored_bytes()) / 6400, 0.1 + 1.0 / 8, 0.02);
  // A negative zero is no zero.
  const float negative[] = {-0.0f, 0.0f, 0.0f, 0.0f};
  EXPECT_EQ(Compressed(std::as_bytes(std::span(negative)), 4).values.size(), sizeof(float));
}

TEST(CompressedElementsTest, RefusesWhatDoesNotFit) {
  const CompressedElements good = Compressed(Draw(100, 4, 0.9, 0, 1), 4);
  const auto with = [&](auto change) {
    CompressedElements bad = good;
    change(bad);
    return bad.Validate();
  };
  EXPECT_THAT(with([](auto& bad) { bad.element_bytes = 3; }), IsError(kInvalid, "its elements are of 3 bytes"));
  EXPECT_THAT(with([](auto& bad) { bad.elements = -1; }), IsError(kInvalid, "it cannot have -1 elements"));
  EXPECT_THAT(with([](auto& bad) { bad.elements = 300; }), IsError(kInvalid, "300 elements, and bits for 128"));
  EXPECT_THAT(with([](auto& bad) { bad.occupied[1] |= uint64_t{1} << 63; }), IsError(kInvalid, "beyond its elements"));
  EXPECT_THAT(with([](auto& bad) { bad.occupied[0] = 0; }), IsError(kInvalid, "elements of 4 bytes in"));
  EXPECT_THAT(with([](auto& bad) { bad.values.pop_back(); }), IsError(kInvalid, "elements of 4 bytes in"));
}

PackedGraph Sample() {
  PackedGraph graph{Draw(500, 1, 0.0, 0, 7), {}};
  graph.tensors.push_back(Compressed(Draw(300, 4, 0.9, 0, 1), 4));
  graph.tensors.push_back(Compressed(Draw(70, 2, 0.0, 0, 2), 2));
  graph.tensors.push_back(Compressed(Draw(900, 1, 0.8, 9, 3), 1));
  return graph;
}

TEST(PackedGraphTest, ComesBackWhole) {
  const PackedGraph graph = Sample();
  const auto file = EncodePacked(graph);
  ASSERT_THAT(file, IsOk());
  const auto read = ReadPackedModel(*file);
  ASSERT_THAT(read, IsOk());
  const auto& again = std::get<PackedGraph>(*read);
  EXPECT_EQ(again.model, graph.model);
  ASSERT_EQ(again.tensors.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto elements = again.ElementsAt(std::to_string(i), graph.tensors[i].dense_bytes());
    ASSERT_THAT(elements, IsOk());
    EXPECT_EQ(*elements, graph.tensors[i].Expanded());
  }
  EXPECT_EQ(*EncodePacked(again), *file);
  EXPECT_THAT(again.ElementsAt("3", 4), IsError(kInvalid, "no elements '3'; it has 3 tensors"));
  EXPECT_THAT(again.ElementsAt("0x", 4), IsError(kInvalid, "no elements '0x'"));
  EXPECT_THAT(again.ElementsAt("0", 4), IsError(kInvalid, "1200 bytes of elements where 4 are asked for"));
  EXPECT_THAT(ReadPacked(*file), IsError(StatusCode::kUnimplemented, "holds a graph"));
}

TEST(PackedGraphTest, NoChangedBytePasses) {
  const std::vector<std::byte> file = *EncodePacked(Sample());
  for (size_t i = 0; i < file.size(); ++i) {
    std::vector<std::byte> changed = file;
    changed[i] ^= std::byte{1};
    ASSERT_FALSE(ReadPackedModel(changed).ok()) << "byte " << i;
  }
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    ASSERT_FALSE(ReadPackedModel(std::span(file).first(bytes)).ok()) << bytes;
  }
}

// The file with another header, whose checksum is right.
template <typename Change>
std::vector<std::byte> WithHeader(const Change& change) {
  std::vector<std::byte> file = *EncodePacked(Sample());
  PackedPrefix prefix;
  std::memcpy(&prefix, file.data(), sizeof(prefix));
  packed::Header header;
  EXPECT_TRUE(header.ParseFromArray(file.data() + sizeof(prefix), static_cast<int>(prefix.header_bytes)));
  const size_t arrays_begin = AlignedUp(sizeof(prefix) + prefix.header_bytes);
  change(header);
  const std::string text = header.SerializeAsString();
  prefix.header_bytes = static_cast<uint32_t>(text.size());
  prefix.header_checksum = HeaderChecksum(prefix, std::as_bytes(std::span(text)));
  std::vector<std::byte> made(AlignedUp(sizeof(prefix) + text.size()));
  std::memcpy(made.data(), &prefix, sizeof(prefix));
  std::memcpy(made.data() + sizeof(prefix), text.data(), text.size());
  made.insert(made.end(), file.begin() + static_cast<int64_t>(arrays_begin), file.end());
  return made;
}

TEST(PackedGraphTest, RefusesHeadersThatLie) {
  EXPECT_THAT(ReadPackedModel(WithHeader([](packed::Header&) {})), IsOk());
  const auto refused = [](auto change, const std::string& why) {
    EXPECT_THAT(ReadPackedModel(WithHeader(change)), IsError(kInvalid, why));
  };
  refused([](auto& header) { header.mutable_graph()->mutable_tensors(0)->set_elements(int64_t{1} << 50); },
          "tensor 0: it cannot have");
  refused([](auto& header) { header.mutable_graph()->mutable_tensors(1)->set_element_bytes(1); }, "tensor 1: it holds");
  refused([](auto& header) { header.mutable_graph()->mutable_model()->set_type(packed::ELEMENT_TYPE_INT8); },
          "is not one of UINT8");
  refused([](auto& header) { header.mutable_graph()->mutable_tensors()->RemoveLast(); }, "after its end");
  refused([](auto& header) { header.add_layers(); }, "both a graph and layers");
}

}  // namespace
}  // namespace swizzle
