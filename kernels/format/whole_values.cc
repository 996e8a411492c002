#include "kernels/format/whole_values.h"

#include <cmath>
#include <cstring>

#include "kernels/base/check.h"

namespace swizzle {
namespace {

class Values final : public PartSink {
 public:
  explicit Values(const WeightMatrix& matrix) { matrix.Write(*this); }
  void Scalar(std::string_view, int64_t) override {}
  void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
    if (array.role != MatrixArray::Role::kValues || array.type != DType::kFloat32) return;
    const size_t before = reals.size();
    reals.resize(before + elements.size() / sizeof(float));
    if (!elements.empty()) std::memcpy(reals.data() + before, elements.data(), elements.size());
  }

  std::vector<float> reals;
};

// The whole number less the zero point, if it stands for this very real number, but for the sign of zero.
std::optional<int32_t> WholeOf(float real, float scale) {
  const float whole = std::nearbyint(real / scale);
  if (!(std::abs(whole) <= 255)) return std::nullopt;
  if (scale * whole != real) return std::nullopt;
  return static_cast<int32_t>(whole);
}

}  // namespace

bool HasWholeValues(const Weight& weight) {
  return weight.quantisation && weight.quantisation->common_zero_point() && weight.matrix.says_value_rows();
}

std::optional<std::vector<std::byte>> WholeValues(const Weight& weight) {
  if (!HasWholeValues(weight)) return std::nullopt;
  const Quantisation& quantisation = *weight.quantisation;
  const int32_t zero_point = *quantisation.common_zero_point(), least = quantisation.dtype == DType::kInt8 ? -128 : 0;
  const std::vector<float> reals = Values(weight.matrix).reals;
  const std::vector<uint32_t> rows = *weight.matrix.ValueRows();
  SWIZZLE_CHECK(rows.size() == reals.size());
  std::vector<std::byte> wholes(reals.size());
  for (size_t i = 0; i < reals.size(); ++i) {
    const std::optional<int32_t> whole = WholeOf(reals[i], quantisation.Of(rows[i]).scale);
    if (!whole || *whole + zero_point < least || *whole + zero_point > least + 255) return std::nullopt;
    wholes[i] = static_cast<std::byte>(*whole + zero_point);
  }
  return wholes;
}

WeightMatrix ScaledByRows(const WeightMatrix& wholes, const Quantisation& quantisation) {
  const std::vector<uint32_t> rows = *wholes.ValueRows();
  return wholes.WithValues([&](std::span<float> values) {
    SWIZZLE_CHECK(rows.size() == values.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] *= quantisation.Of(rows[i]).scale;
  });
}

}  // namespace swizzle
