#include "model_loader/interpreter/values/moved.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/settle.h"
#include "tests/model_loader/interpreter/operators/run_node.h"

namespace swizzle::interpreter {
namespace {

// An array, and what it is to hold: moved element by element.
struct Twin {
  Array array;
  std::vector<int32_t> expected;

  const Shape& shape() const { return array.shape; }
  int32_t At(const Shape& index) const {
    const Shape strides = DenseStrides(shape());
    return expected[static_cast<size_t>(std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}))];
  }
};

class MovedTest : public ::testing::Test {
 protected:
  Twin Numbers(Shape shape) {
    Twin twin{*memory_->Allocate(DType::kInt32, std::move(shape)), {}};
    for (int64_t i = 0; i < twin.array.elements(); ++i) twin.expected.push_back(next_++);
    std::ranges::copy(twin.expected, twin.array.Mutable<int32_t>().begin());
    return twin;
  }

  Array List(const std::vector<int64_t>& numbers) {
    Array list = *memory_->Allocate(DType::kInt64, {static_cast<int64_t>(numbers.size())});
    std::ranges::copy(numbers, list.Mutable<int64_t>().begin());
    return list;
  }

  // What the operator makes of the first input, each element being that of `source(its index)`.
  template <typename Run, typename Source>
  Twin Made(Run run, const std::vector<Array>& inputs, std::map<std::string, Attribute> attributes,
            const Source& source) {
    const Node node{"Op", "", "node", {}, {0}, std::move(attributes)};
    Call call(node, 17, inputs, *memory_, *stream_);
    Twin made{*run(call), {}};
    Shape index(made.shape().size(), 0);
    for (int64_t i = 0; i < made.array.elements(); ++i) {
      int64_t rest = i;
      for (size_t d = index.size(); d-- > 0; rest /= made.shape()[d]) index[d] = rest % made.shape()[d];
      made.expected.push_back(source(index));
    }
    return made;
  }

  Twin ReshapedTo(const Twin& x, const Shape& shape) {
    Twin made = Made(Reshape, {x.array, List(shape)}, {}, [](const Shape&) { return 0; });
    made.expected = x.expected;
    return made;
  }

  Twin InOrder(const Twin& x, const std::vector<int64_t>& order) {
    return Made(Transpose, {x.array}, {{"perm", order}}, [&](const Shape& index) {
      Shape from(index.size());
      for (size_t d = 0; d < index.size(); ++d) from[static_cast<size_t>(order[d])] = index[d];
      return x.At(from);
    });
  }

  Twin Sliced(const Twin& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
    return Made(Slice, {x.array, List({start}), List({end}), List({axis}), List({step})}, {}, [&](Shape index) {
      index[static_cast<size_t>(axis)] = start + index[static_cast<size_t>(axis)] * step;
      return x.At(index);
    });
  }

  Twin Together(const Twin& a, const Twin& b, int64_t axis) {
    return Made(ConcatArrays, {a.array, b.array}, {{"axis", axis}}, [&](Shape index) {
      int64_t& at = index[static_cast<size_t>(axis)];
      const int64_t first = a.shape()[static_cast<size_t>(axis)];
      if (at < first) return a.At(index);
      at -= first;
      return b.At(index);
    });
  }

  Twin SpreadTo(const Twin& x, const Shape& shape) {
    return Made(Expand, {x.array, List(shape)}, {}, [&](Shape index) {
      index.erase(index.begin(), index.end() - static_cast<std::ptrdiff_t>(x.shape().size()));
      for (size_t d = 0; d < index.size(); ++d) index[d] = x.shape()[d] == 1 ? 0 : index[d];
      return x.At(index);
    });
  }

  void ExpectRight(const Twin& twin) {
    const StatusOr<Array> made = Settled(twin.array, *memory_, *stream_, nullptr);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_EQ(made->shape, twin.shape());
    ASSERT_TRUE(std::ranges::equal(made->As<int32_t>(), twin.expected));
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  const std::unique_ptr<Stream> stream_ = *backend_->NewStream(2);
  const std::shared_ptr<Memory> memory_ = Memory::New({});
  int32_t next_ = 0;
};

TEST_F(MovedTest, AWindowsShiftAndItsWindowsAreOneCopy) {
  const Twin image = Numbers({2, 56, 56, 24});
  const Twin down = Together(Sliced(image, 1, 3, 56, 1), Sliced(image, 1, 0, 3, 1), 1);
  const Twin rolled = Together(Sliced(down, 2, 3, 56, 1), Sliced(down, 2, 0, 3, 1), 2);
  const Twin split = ReshapedTo(rolled, {2, 8, 7, 8, 7, 24});
  const Twin windows = ReshapedTo(InOrder(split, {0, 1, 3, 2, 4, 5}), {128, 49, 24});
  ASSERT_NE(windows.array.moved, nullptr);
  for (const Array& source : windows.array.moved->sources) EXPECT_EQ(source.data, image.array.data);
  EXPECT_LE(windows.array.moved->boxes.size(), 9u);
  ExpectRight(windows);
}

TEST_F(MovedTest, WindowsAreTurnedBackAndShifted) {
  const Twin windows = Numbers({64, 49, 16});
  const Twin split = ReshapedTo(windows, {1, 8, 8, 7, 7, 16});
  const Twin image = ReshapedTo(InOrder(split, {0, 1, 3, 2, 4, 5}), {1, 56, 56, 16});
  const Twin down = Together(Sliced(image, 1, 53, 56, 1), Sliced(image, 1, 0, 53, 1), 1);
  ExpectRight(down);
  ExpectRight(ReshapedTo(Together(Sliced(down, 2, 53, 56, 1), Sliced(down, 2, 0, 53, 1), 2), {1, 3136, 16}));
}

TEST_F(MovedTest, APartThatIsDenseIsNotCopied) {
  const Twin x = Numbers({8, 40, 50});
  const Twin part = ReshapedTo(Sliced(x, 0, 2, 5, 1), {3, 2000});
  ASSERT_NE(part.array.moved, nullptr);
  const StatusOr<Array> made = Settled(part.array, *memory_, *stream_, nullptr);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->data.get(), x.array.data.get() + 2 * 2000 * sizeof(int32_t));
  ExpectRight(part);
  const Twin turned = InOrder(InOrder(x, {2, 0, 1}), {1, 2, 0});
  EXPECT_EQ(Settled(turned.array, *memory_, *stream_, nullptr)->data.get(), x.array.data.get());
}

TEST_F(MovedTest, WhatIsLeftLivesAsLongAsWhatIsMoved) {
  Twin part = Sliced(Numbers({8, 40, 50}), 0, 2, 5, 1);
  std::vector<Array> others;
  for (int i = 0; i < 8; ++i) others.push_back(Numbers({8, 40, 50}).array);
  ExpectRight(part);
}

TEST_F(MovedTest, WhatIsCutAwayIsLetGo) {
  Twin x = Numbers({2, 2048});
  std::weak_ptr<std::byte[]> gone;
  for (int i = 0; i < 12; ++i) {
    const Twin more = Numbers({1, 2048});
    if (i == 0) gone = more.array.data;
    x = Sliced(Together(Together(x, x, 0), more, 0), 0, 3, 5, 1);
    ASSERT_LE(x.array.moved->sources.size(), x.array.moved->boxes.size()) << i;
  }
  EXPECT_TRUE(gone.expired());
  ExpectRight(x);
}

TEST_F(MovedTest, TwoThatCannotMoveItShareOneCopy) {
  const Twin x = Numbers({30, 200, 20});
  const Twin merged = ReshapedTo(InOrder(x, {1, 0, 2}), {6000, 20});
  const Twin first = Sliced(merged, 0, 1, 5000, 1), second = Sliced(merged, 0, 7, 5900, 1);
  ASSERT_NE(first.array.moved, nullptr);
  ASSERT_NE(second.array.moved, nullptr);
  EXPECT_NE(first.array.moved->sources[0].data, x.array.data);
  EXPECT_EQ(first.array.moved->sources[0].data, second.array.moved->sources[0].data);
  EXPECT_EQ(Settled(merged.array, *memory_, *stream_, nullptr)->data, first.array.moved->sources[0].data);
  ExpectRight(first);
  ExpectRight(second);
}

TEST_F(MovedTest, ALittlePartDoesNotKeepAllOfIt) {
  Twin x = Numbers({64, 2000});
  Twin part = Sliced(x, 0, 5, 6, 1);
  x.array = {};
  part.array = *Settled(part.array, *memory_, *stream_, nullptr);
  EXPECT_EQ(memory_->live_bytes(), part.array.bytes());
  ExpectRight(part);
}

TEST_F(MovedTest, EverySecondAndBackwards) {
  const Twin x = Numbers({20, 30, 40});
  ExpectRight(Sliced(x, 0, 1, 20, 2));
  ExpectRight(Sliced(x, 1, 29, -31, -1));
  ExpectRight(Sliced(Sliced(x, 2, 39, -41, -3), 2, 2, 12, 4));
  const Twin both = Together(Sliced(x, 1, 0, 11, 1), Sliced(x, 1, 20, 29, 1), 1);
  ExpectRight(Sliced(both, 1, 18, 0, -5));
  ExpectRight(Sliced(both, 1, 2, 20, 7));
  ExpectRight(Sliced(both, 1, 10, 11, 1));
}

TEST_F(MovedTest, DimensionsThatDoNotDivideEachOther) {
  const Twin x = Numbers({6, 4, 10, 12});
  ExpectRight(ReshapedTo(InOrder(x, {0, 2, 1, 3}), {6, 8, 5, 12}));
  ExpectRight(ReshapedTo(Sliced(x, 1, 1, 4, 1), {9, 2, 120}));
}

TEST_F(MovedTest, WhatIsPaddedIsCopiedOnce) {
  const Twin x = Numbers({2, 30, 40});
  const Array filler = List({7});
  const auto padded = [&](const Twin& from, std::vector<int64_t> amounts) {
    return Made(Pad, {from.array, List(amounts), *Convert(*memory_, filler, DType::kInt32)}, {}, [&](Shape index) {
      for (size_t d = 0; d < index.size(); ++d) {
        index[d] -= amounts[d];
        if (index[d] < 0 || index[d] >= from.shape()[d]) return 7;
      }
      return from.At(index);
    });
  };
  const Twin framed = padded(x, {0, 2, 3, 0, 1, 0});
  ASSERT_NE(framed.array.moved, nullptr);
  ExpectRight(framed);
  ExpectRight(Sliced(ReshapedTo(InOrder(framed, {1, 0, 2}), {11, 6, 43}), 2, 1, 40, 2));
  ExpectRight(padded(Sliced(x, 1, 3, 20, 1), {1, 0, 0, 1, 5, 0}));
  EXPECT_EQ(padded(x, {0, 0, 0, 0, 0, 0}).array.data, x.array.data);
}

TEST_F(MovedTest, SpreadThenMoved) {
  const Twin x = Numbers({1, 7, 1, 5});
  const Twin spread = SpreadTo(InOrder(SpreadTo(x, {3, 7, 8, 5}), {0, 1, 3, 2}), {3, 7, 5, 8});
  ExpectRight(SpreadTo(ReshapedTo(spread, {3, 1, 35, 8}), {4, 3, 6, 35, 8}));
}

TEST_F(MovedTest, TooManyBoxesAreCopiedInBetween) {
  Twin all = Numbers({2, 16, 40});
  for (int i = 0; i < 200; ++i) all = Together(all, Numbers({2, 16, 1}), 2);
  ASSERT_TRUE(all.array.moved == nullptr || all.array.moved->boxes.size() <= Moved::kMostBoxes);
  ExpectRight(all);
  ExpectRight(ReshapedTo(Sliced(InOrder(all, {0, 2, 1}), 1, 3, 233, 1), {4, 115, 16}));
}

TEST_F(MovedTest, ManyInputsOfManyBoxesAreNoBoxes) {
  Twin all = Numbers({1, 16, 40});
  for (int i = 0; i < 100; ++i) all = Together(all, Numbers({1, 16, 1}), 2);
  const std::vector<Array> inputs(2000, all.array);
  const int64_t bytes = 2001 * all.array.bytes();  // of the result, and of one copy of what is joined
  const std::shared_ptr<Memory> memory = Memory::New({.max_live_bytes = bytes});
  const Node node{"Concat", "", "node", {}, {0}, {{"axis", int64_t{0}}}};
  Call call(node, 17, inputs, *memory, *stream_);
  const StatusOr<Array> made = ConcatArrays(call);
  ASSERT_TRUE(made.ok()) << made.status();
  for (size_t i = 0; i < 2000; i += 999) {
    ASSERT_TRUE(
        std::ranges::equal(made->As<int32_t>().subspan(i * all.expected.size(), all.expected.size()), all.expected));
  }
}

TEST_F(MovedTest, LargerThanTheLimitIsSaidAtOnce) {
  const std::shared_ptr<Memory> little = Memory::New({.max_array_bytes = 1 << 16});
  const Array inputs[] = {*little->Allocate(DType::kInt32, {1, 64, 64}), List({64, 64, 64})};
  const Node node{"Expand", "", "node", {}, {0}, {}};
  Call call(node, 17, inputs, *little, *stream_);
  EXPECT_EQ(Expand(call).status().code(), StatusCode::kResourceExhausted);
  const Array deep[] = {inputs[0], List(std::vector<int64_t>(kMaxListLength, 2))};
  Call other(node, 17, deep, *little, *stream_);
  EXPECT_EQ(Expand(other).status().code(), StatusCode::kInvalidArgument);
}

// A shape of as many elements.
Shape OtherShape(int64_t elements, std::mt19937& random) {
  Shape shape;
  while (elements > 1 && shape.size() < 5) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= elements && d <= 64; ++d) {
      if (elements % d == 0) divisors.push_back(d);
    }
    shape.push_back(divisors[random() % divisors.size()]);
    elements /= shape.back();
  }
  shape.push_back(elements);
  return shape;
}

TEST_F(MovedTest, AnythingAfterAnything) {
  std::mt19937 random(7);
  int moved = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    Twin x = Numbers({4, 12, 10, 6}), before = x;
    for (int step = 0; step < 8; ++step) {
      const int64_t rank = x.array.rank();
      const int64_t axis = rank == 0 ? 0 : static_cast<int64_t>(random() % static_cast<size_t>(rank));
      const int64_t extent = rank == 0 ? 1 : x.shape()[static_cast<size_t>(axis)];
      const Twin now = x;
      const auto kind = random() % 6;
      if (kind == 0) {
        x = ReshapedTo(x, OtherShape(x.array.elements(), random));
      } else if (kind == 1) {
        std::vector<int64_t> order(static_cast<size_t>(rank));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::shuffle(order, random);
        x = InOrder(x, order);
      } else if (kind == 2 && extent > 2) {
        const auto start = static_cast<int64_t>(random() % static_cast<size_t>(extent / 2));
        x = Sliced(x, axis, start, extent, extent > 8 && random() % 2 == 0 ? 2 : 1);
      } else if (kind == 3 && extent > 2) {
        x = Sliced(x, axis, extent - 1, -extent - 1, -1);
      } else if (kind == 4 && x.array.elements() < 20000) {
        x = Together(x, before.shape() == x.shape() ? before : x, axis);
      } else if (extent > 1) {
        const auto cut = 1 + static_cast<int64_t>(random() % static_cast<size_t>(extent - 1));
        x = Together(Sliced(x, axis, cut, extent, 1), Sliced(x, axis, 0, cut, 1), axis);
      }
      before = now;
      moved += x.array.moved != nullptr ? 1 : 0;
    }
    ExpectRight(x);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(moved, 500);
}

}  // namespace
}  // namespace swizzle::interpreter
