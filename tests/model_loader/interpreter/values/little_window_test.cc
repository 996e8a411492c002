#include "model_loader/interpreter/values/little_window.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/values/moved.h"
#include "model_loader/interpreter/values/settle.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

class LittleWindowTest : public ::testing::Test {
 protected:
  LittleWindowTest()
      : stream_(*backend_->NewStream(1)), call_(node_, 17, std::span<const Array>(), *memory_, *stream_) {}

  // Elements count from 0.
  Array Counting(DType dtype, Shape shape) {
    Array counting = *memory_->Allocate(DType::kInt64, std::move(shape));
    const auto elements = counting.Mutable<int64_t>();
    std::iota(elements.begin(), elements.end(), int64_t{0});
    return *Convert(*memory_, counting, dtype);
  }

  // The ranges as the general way has them, in FP32.
  std::vector<float> Expected(const Array& array, const std::vector<SliceRange>& ranges, const Shape& shape) {
    Array moved{array.dtype, shape, nullptr};
    moved.moved = std::make_shared<const Moved>(*SlicedMoved(MovedOf(array), ranges));
    return FloatsOf(*Settled(moved, *memory_, *stream_, nullptr));
  }

  std::vector<float> FloatsOf(const Array& array) {
    const Array floats = *Convert(*memory_, array, DType::kFloat32);
    return {floats.As<float>().begin(), floats.As<float>().end()};
  }

  const Node node_{"Slice", "", "slice", {}, {}, {}};
  const std::shared_ptr<Memory> memory_ = Memory::New({});
  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  const std::unique_ptr<Stream> stream_;
  Call call_;
};

TEST_F(LittleWindowTest, IsWhatTheGeneralWayMakes) {
  const std::vector<std::vector<SliceRange>> windows = {
      {{0, 2, 1}, {0, 3, 1}, {0, 5, 1}},  {{1, 1, 1}, {0, 3, 1}, {0, 5, 1}}, {{0, 2, 1}, {1, 2, 1}, {0, 5, 1}},
      {{0, 2, 1}, {0, 3, 1}, {2, 2, 1}},  {{1, 1, 1}, {2, 1, 1}, {1, 3, 1}}, {{0, 2, 1}, {2, 3, -1}, {4, 5, -1}},
      {{1, 2, -1}, {0, 2, 2}, {0, 3, 2}}, {{0, 2, 1}, {1, 1, 1}, {4, 1, 7}}, {{0, 1, 1}, {0, 1, 1}, {0, 1, 1}},
      {{1, 1, 1}, {0, 1, 1}, {1, 2, 3}},
  };
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kUint8, DType::kFloat16}) {
    const Array array = Counting(dtype, {2, 3, 5});
    for (const auto& ranges : windows) {
      Shape shape;
      for (const SliceRange& range : ranges) shape.push_back(range.count);
      ASSERT_TRUE(IsLittle(call_, array, shape));
      const auto window = LittleWindow(call_, array, ranges, shape);
      ASSERT_THAT(window, swizzle::testing::IsOk());
      EXPECT_EQ(window->shape, shape);
      EXPECT_EQ(window->dtype, dtype);
      EXPECT_EQ(FloatsOf(*window), Expected(array, ranges, shape)) << ShapeText(shape);
    }
  }
}

TEST_F(LittleWindowTest, CopiesNothingThatLiesTogetherAndIsMuchOfTheArray) {
  const Array array = Counting(DType::kFloat32, {2, 64});
  const SliceRange second[] = {{1, 1, 1}, {0, 64, 1}}, few[] = {{1, 1, 1}, {8, 4, 1}};
  EXPECT_EQ(LittleWindow(call_, array, second, {64})->data.get(), array.data.get() + 64 * sizeof(float));
  const auto copy = LittleWindow(call_, array, few, {1, 4});
  ASSERT_THAT(copy, swizzle::testing::IsOk());
  EXPECT_EQ(FloatsOf(*copy), (std::vector<float>{72, 73, 74, 75}));
  EXPECT_EQ(copy->data.use_count(), 1) << "it would keep thirty times as much";
}

TEST_F(LittleWindowTest, LeavesLargePartsAndWhatIsNotMadeAlone) {
  const Array large = Counting(DType::kFloat32, {4, 2048});
  EXPECT_FALSE(IsLittle(call_, large, {2, 2048}));
  EXPECT_TRUE(IsLittle(call_, large, {1, 100}));
  Array moved{DType::kFloat32, {2048, 4}, nullptr};
  moved.moved = std::make_shared<const Moved>(TransposedMoved(MovedOf(large), std::vector<int64_t>{1, 0}));
  EXPECT_FALSE(IsLittle(call_, moved, {1, 4}));
}

}  // namespace
}  // namespace swizzle::interpreter
