// Whatever a file says of a matrix: it is refused, or it is another matrix, whose every function holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/format/format_row.h"

namespace swizzle {
namespace {

// A matrix as a file has it.
struct Stored {
  struct Part {
    std::string name;
    int64_t scalar = 0;
    bool is_array = false;
    size_t element_bytes = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Part> parts;
};

class Sink final : public PartSink {
 public:
  void Scalar(std::string_view name, int64_t value) override {
    stored.parts.push_back({std::string(name), value, false, 0, {}});
  }
  void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
    const size_t from = ElementBytes(array.type), to = ElementBytes(array.stored);
    Stored::Part part{std::string(array.name), 0, true, to, {}};
    for (size_t i = 0; i < elements.size(); i += from) {  // little endian: the low bytes are first
      const auto low = elements.subspan(i, to);
      part.bytes.insert(part.bytes.end(), low.begin(), low.end());
    }
    stored.parts.push_back(std::move(part));
  }
  Stored stored;
};

class Source final : public PartSource {
 public:
  explicit Source(const Stored& stored) : stored_(stored) {}
  StatusOr<int64_t> Scalar(std::string_view name) override { return Find(name).scalar; }
  StatusOr<std::span<const std::byte>> Array(const MatrixArray& array) override {
    return std::span<const std::byte>(Find(array.name).bytes);
  }

 private:
  const Stored::Part& Find(std::string_view name) const {
    for (const Stored::Part& part : stored_.parts) {
      if (part.name == name) return part;
    }
    SWIZZLE_CHECK(false);
    return stored_.parts.front();
  }
  const Stored& stored_;
};

// In blocks of 16 rows the same two of any four columns: every format holds it. Blocks at the edges are not whole.
DenseMatrix Draw(int64_t rows, int64_t cols) {
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t place = (col + row / 16) % 4;
      if (place < 2 && (row / 16 + col / 16) % 3 != 2)
        dense.values[row * cols + col] = static_cast<float>(1 + col + row);
    }
  }
  return dense;
}

// Changes one thing of a part; returns what.
std::string Corrupt(Stored::Part& part, std::mt19937& random) {
  if (!part.is_array) {
    constexpr int64_t kAwkward[] = {-1, 0, 3, 5, 1 << 20, int64_t{1} << 33, INT64_MIN, INT64_MAX};
    part.scalar = random() % 2 == 0 ? part.scalar ^ int64_t { 1 } << random() % 64 : kAwkward[random() % 8];
    return part.name + " = " + std::to_string(part.scalar);
  }
  const size_t elements = part.bytes.size() / part.element_bytes;
  const size_t kind = random() % 5;
  if (elements == 0 || kind == 0) {  // one more or less
    const bool grows = elements == 0 || random() % 2 == 0;
    part.bytes.resize(part.bytes.size() + (grows ? part.element_bytes : -part.element_bytes));
    return part.name + (grows ? " grows" : " shrinks");
  }
  const auto element = [&](size_t i) {
    return std::span(part.bytes).subspan(i * part.element_bytes, part.element_bytes);
  };
  const size_t at = random() % elements, other = random() % elements;
  if (kind == 1) {  // two change places
    std::ranges::swap_ranges(element(at), element(other));
    return part.name + " " + std::to_string(at) + " and " + std::to_string(other) + " swapped";
  }
  if (kind == 2) {
    const auto value = static_cast<std::byte>(random() % 2 == 0 ? 0xff : 0);
    std::ranges::fill(element(at), value);
    return part.name + " " + std::to_string(at) + " extreme";
  }
  const size_t bit = random() % (part.element_bytes * 8);
  part.bytes[at * part.element_bytes + bit / 8] ^= std::byte{1} << bit % 8;
  return part.name + " " + std::to_string(at) + " bit " + std::to_string(bit);
}

// Of a matrix that was taken: no two functions disagree.
void ExpectHolds(const WeightMatrix& matrix, MatrixSize size) {
  ASSERT_EQ(matrix.size(), size);
  ASSERT_TRUE(matrix.Validate().ok());
  const DenseMatrix dense = matrix.ToDense();
  ASSERT_EQ(std::ssize(dense.values), size.rows * size.cols);
  std::vector<bool> visited(dense.values.size());
  int64_t rows = 0;
  matrix.ForEachRow([&](int64_t row, std::span<const uint32_t> cols) {
    ASSERT_EQ(row, rows++);
    int64_t previous = -1;
    for (const uint32_t col : cols) {
      ASSERT_GT(int64_t{col}, previous);
      ASSERT_LT(int64_t{col}, size.cols);
      visited[row * size.cols + col] = true;
      previous = col;
    }
  });
  ASSERT_EQ(rows, size.rows);
  for (size_t i = 0; i < visited.size(); ++i) {
    ASSERT_TRUE(visited[i] || dense.values[i] == 0) << "entry " << i << " is not visited";
  }
  ASSERT_GE(matrix.nnz(), dense.nnz());
  if (const auto value_rows = matrix.ValueRows()) {
    for (const uint32_t row : *value_rows) ASSERT_LT(int64_t{row}, std::max<int64_t>(size.rows, 1));
  }
}

class CorruptionsTest : public ::testing::TestWithParam<Format> {};

TEST_P(CorruptionsTest, AreRefusedOrAnotherMatrix) {
  std::mt19937 random(11);
  std::map<std::string, int> refused;  // by part
  constexpr int kTurns = 4000;
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool pattern = !HasValues(GetParam());
    const DenseMatrix dense = turn % 2 == 0 && !pattern ? Draw(45, 60) : Draw(48, 48);
    const MatrixSize size{dense.rows, dense.cols};
    const auto matrix = WeightMatrix::FromDense(GetParam(), dense);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    Sink sink;
    matrix->Write(sink);
    for (const Stored::Part& part : sink.stored.parts) refused.try_emplace(part.name);
    Stored::Part& part = sink.stored.parts[random() % sink.stored.parts.size()];
    const std::string what = Corrupt(part, random);
    SCOPED_TRACE(what);
    Source source(sink.stored);
    const auto read = WeightMatrix::Read(GetParam(), size, source);
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
      ++refused[part.name];
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectHolds(*read, size));
  }
  for (const auto& [part, count] : refused) {
    EXPECT_GT(count, kTurns / std::ssize(refused) / 20) << "nothing holds " << part << " to the rest";
  }
}

std::vector<Format> AllFormats() {
  std::vector<Format> formats;
  for (const FormatRow& row : FormatRows()) formats.push_back(row.format);
  return formats;
}
INSTANTIATE_TEST_SUITE_P(Formats, CorruptionsTest, ::testing::ValuesIn(AllFormats()), [](const auto& instance) {
  std::string name(FormatName(instance.param));
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace swizzle
