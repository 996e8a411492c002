// Tables of text with aligned columns, and numbers as people read them. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_TEXT_TABLE_H_
#define SWIZZLE_MODEL_LOADER_PACK_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace swizzle::pack {

enum class Align { kLeft, kRight };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: as many cells as columns.
  void AddRow(std::vector<std::string> cells);

  // A line of titles, a rule, and a line for each row; columns are two spaces apart. No line ends in a space.
  std::string Render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string BytesText(int64_t bytes);         // "512 B", "1.50 KiB", "12.3 MiB": three digits
std::string MicrosecondsText(double us);      // "8.25 us", "1.20 ms", "2.00 s": three digits
std::string PercentText(double part);         // "90.0 %" of 0.9
std::string RatioText(int64_t a, int64_t b);  // "5.6x" of a / b; "-" where b is 0

// `text`, or where that is longer than `width` its first three quarters, "..." and its end. REQUIRES: width >= 8.
std::string Shortened(const std::string& text, size_t width);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_TEXT_TABLE_H_
