// How weights of whole numbers are packed for tensor cores: what lanes read is the matrix. Needs no GPU.
#include "kernels/cuda/int8/byte_panels.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace swizzle::cuda {
namespace {

constexpr int kRows = BytePanels::kRows, kStep = BytePanels::kStep;

using Rows = std::vector<std::vector<WholeEntry>>;

Rows Draw(int64_t rows, int64_t cols, int bits, double density, int vector_rows, std::mt19937& random) {
  Rows drawn(rows);
  std::bernoulli_distribution kept(density);
  for (int64_t first = 0; first < rows; first += vector_rows) {
    for (int32_t col = 0; col < cols; ++col) {
      if (!kept(random)) continue;
      for (int64_t row = first; row < std::min(rows, first + vector_rows); ++row) {
        drawn[row].push_back({col, static_cast<int32_t>(random() % (1u << bits)) - (1 << (bits - 1))});
      }
    }
  }
  return drawn;
}

// The weight of a panel's row and a step's slot, as a lane finds it.
int WeightAt(const PackedPanels& packed, int bits, uint32_t step, int row, int slot) {
  const uint8_t* from = packed.weights.data() + step * BytePanels::StepBytes(bits);
  const int word = slot / 16, t = slot % 8 / 2, byte = slot % 16 / 8 * 2 + slot % 2, lane = row * 4 + t;
  int value = 0;
  for (int done = 0; done < bits; done += 8) {
    const bool last = done + 8 >= bits;
    int digit;
    if (bits - done == 4) {
      digit = static_cast<int8_t>(word == 0 ? from[lane * 4 + byte] << 4 : from[lane * 4 + byte] & 0xF0) >> 4;
    } else {
      const uint8_t stored = from[lane * 8 + word * 4 + byte];
      digit = last ? static_cast<int8_t>(stored) : stored;
    }
    value += digit * (1 << done);
    from += BytePanels::StepBytes(8);
  }
  return value;
}

int ColumnAt(const PackedPanels& packed, uint32_t step, int slot) {
  return packed.columns[step * kStep + slot % 4 * 8 + slot / 4];
}

TEST(BytePanelsTest, LanesReadTheMatrix) {
  std::mt19937 random(3);
  for (const int bits : {4, 8, 12, 16}) {
    for (const int vector_rows : {1, 2, 4, 8}) {
      for (const int64_t cols : {1, 5, 64, 301}) {
        const int64_t rows = 8 + static_cast<int64_t>(random() % 20);
        const Rows drawn = Draw(rows, cols, bits, 0.3, vector_rows, random);
        const PackedPanels packed = BytePanels::Pack(drawn, cols, bits);
        ASSERT_EQ(packed.panels.size(), static_cast<size_t>((rows + 7) / 8));
        std::map<std::pair<int64_t, int>, int> expected, actual;
        for (int64_t row = 0; row < rows; ++row) {
          for (const WholeEntry& entry : drawn[row]) {
            if (entry.value != 0) expected[{row, entry.column}] = entry.value;
          }
        }
        for (const BytePanel& panel : packed.panels) {
          for (uint32_t i = 0; i < panel.steps * kStep; ++i) {
            const uint32_t step = panel.step + i / kStep;
            const int slot = static_cast<int>(i % kStep), col = ColumnAt(packed, step, slot);
            ASSERT_LT(col, cols);
            for (int row = 0; row < kRows; ++row) {
              const int weight = WeightAt(packed, bits, step, row, slot);
              if (weight != 0) actual[{panel.row + row, col}] += weight;
            }
          }
        }
        EXPECT_EQ(actual, expected) << bits << " bits, vectors of " << vector_rows << ", " << cols << " columns";
      }
    }
  }
}

// The longest panels begin, and what there is no column for takes no step.
TEST(BytePanelsTest, LongPanelsComeFirst) {
  Rows rows(24);
  for (int32_t col = 0; col < 40; ++col) rows[17].push_back({col, 1});
  rows[3].push_back({7, -1});
  rows[8].push_back({7, 0});
  const PackedPanels packed = BytePanels::Pack(rows, 40, 8);
  ASSERT_EQ(packed.panels.size(), 3u);
  EXPECT_EQ(packed.panels[0].row, 16u);
  EXPECT_EQ(packed.panels[0].steps, 2u);
  EXPECT_EQ(packed.panels[1].row, 0u);
  EXPECT_EQ(packed.panels[1].steps, 1u);
  EXPECT_EQ(packed.panels[2].steps, 0u);
}

// Where classes of columns are alike in number, no eight slots that are read at once have two of one.
TEST(BytePanelsTest, SlotsReadAtOnceDiffer) {
  Rows rows(8);
  for (int32_t col = 0; col < 64; ++col) rows[0].push_back({col, 1});
  const PackedPanels packed = BytePanels::Pack(rows, 64, 8);
  for (uint32_t step = 0; step < 2; ++step) {
    for (int first = 0; first < kStep; first += 8) {
      std::set<int> classes;
      for (int slot = first; slot < first + 8; ++slot) classes.insert(ColumnAt(packed, step, slot) % 8);
      EXPECT_EQ(classes.size(), 8u) << "step " << step << ", slot " << first;
    }
  }
}

TEST(BytePanelsTest, RefusesWhatIsNoWholeNumber) {
  const auto matrix = [](float value) { return SrBcrsMatrix::FromDense({2, 1, {value, 1}}, 2); };
  for (const float value : {0.5f, 8.0f, -9.0f}) {
    const auto made = BytePanels::Make(matrix(value), 4);
    ASSERT_FALSE(made.ok()) << value;
    EXPECT_NE(made.status().message().find("row 0"), std::string::npos) << made.status();
  }
}

}  // namespace
}  // namespace swizzle::cuda
