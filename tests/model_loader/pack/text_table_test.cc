#include "model_loader/pack/text_table.h"

#include <gtest/gtest.h>

namespace swizzle::pack {
namespace {

TEST(TextTable, AlignsColumnsAndTrimsLines) {
  TextTable table({{"name"}, {"bytes", Align::kRight}, {"note"}});
  table.AddRow({"stem", "12", ""});
  table.AddRow({"a", "1234567", "long"});
  EXPECT_EQ(table.Render(),
            "name    bytes  note\n"
            "----  -------  ----\n"
            "stem       12\n"
            "a     1234567  long\n");
}

TEST(TextTable, WithoutRowsIsItsTitles) {
  EXPECT_EQ(TextTable({{"a"}, {"b", Align::kRight}}).Render(), "a  b\n-  -\n");
}

TEST(BytesText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1.00 KiB");
  EXPECT_EQ(BytesText(33 * 1024 + 512), "33.5 KiB");
  EXPECT_EQ(BytesText(int64_t{700} << 20), "700 MiB");
  EXPECT_EQ(BytesText(int64_t{3} << 40), "3.00 TiB");
  EXPECT_EQ(BytesText(int64_t{3} << 52), "12288 TiB");
}

TEST(MicrosecondsText, ChangesItsUnit) {
  EXPECT_EQ(MicrosecondsText(0.123), "0.12 us");
  EXPECT_EQ(MicrosecondsText(9.996), "10.0 us");
  EXPECT_EQ(MicrosecondsText(431.7), "432 us");
  EXPECT_EQ(MicrosecondsText(1500.0), "1.50 ms");
  EXPECT_EQ(MicrosecondsText(2e6), "2.00 s");
}

TEST(PercentAndRatio, AreReadable) {
  EXPECT_EQ(PercentText(0.9), "90.0 %");
  EXPECT_EQ(PercentText(0.0), "0.0 %");
  EXPECT_EQ(RatioText(56, 10), "5.6x");
  EXPECT_EQ(RatioText(56, 0), "-");
}

TEST(Shortened, KeepsTheStartAndTheEnd) {
  EXPECT_EQ(Shortened("short", 8), "short");
  EXPECT_EQ(Shortened("eightxxx", 8), "eightxxx");
  EXPECT_EQ(Shortened("/blocks/blocks.10/pointwise/Conv", 24), "/blocks/blocks....e/Conv");
}

}  // namespace
}  // namespace swizzle::pack
