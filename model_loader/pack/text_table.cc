#include "model_loader/pack/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <utility>

#include "kernels/base/status.h"

namespace swizzle::pack {
namespace {

constexpr size_t kGap = 2;

std::string Format(const char* format, double number) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

// A number of at most four figures: three digits where it has a fraction.
std::string ThreeDigits(double number) {
  if (number < 9.995) return Format("%.2f", number);
  return Format(number < 99.95 ? "%.1f" : "%.0f", number);
}

// `amount` in the first unit that leaves it below `step`, or the last.
std::string InUnits(double amount, double step, std::span<const char* const> units) {
  size_t unit = 0;
  for (; unit + 1 < units.size() && amount >= step; ++unit) amount /= step;
  return ThreeDigits(amount) + " " + units[unit];
}

std::string Padded(const std::string& text, size_t width, Align align) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return align == Align::kLeft ? text + space : space + text;
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  SWIZZLE_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::Render() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].title.size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      line += Padded(cell_of(c), widths[c], columns_[c].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  add_line([&](size_t c) { return columns_[c].title; });
  add_line([&](size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) add_line([&](size_t c) { return row[c]; });
  return text;
}

std::string BytesText(int64_t bytes) {
  constexpr double kStep = 1024.0;
  if (bytes < 1024) return Concat(bytes, " B");
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  return InUnits(static_cast<double>(bytes) / kStep, kStep, kUnits);
}

std::string MicrosecondsText(double us) {
  constexpr const char* kUnits[] = {"us", "ms", "s"};
  return InUnits(us, 1000.0, kUnits);
}

std::string PercentText(double part) { return Format("%.1f %%", part * 100.0); }

std::string RatioText(int64_t a, int64_t b) {
  return b == 0 ? "-" : Format("%.1fx", static_cast<double>(a) / static_cast<double>(b));
}

std::string Shortened(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  constexpr std::string_view kDots = "...";
  const size_t tail = width / 4;
  return text.substr(0, width - kDots.size() - tail) + std::string(kDots) + text.substr(text.size() - tail);
}

}  // namespace swizzle::pack
