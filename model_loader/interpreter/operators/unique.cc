// Unique: which elements, or slices along an axis, there are, each once.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/operator/element_functions.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// The input as `count` slices of `length` elements, one behind the other.
struct Slices {
  Array array;                 // [slices, ...]
  std::vector<int64_t> order;  // its axes as the input has them; empty: the input is taken as a list
  int64_t count = 0, length = 1;
};

StatusOr<Slices> SlicesOf(Call& call) {
  const Array& x = call.In(0);
  Slices slices;
  if (!call.HasAttribute("axis")) {
    slices.count = x.elements();
    slices.array = x.WithShape({slices.count});
    return slices;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, x.rank()));
  slices.order.resize(static_cast<size_t>(x.rank()));
  std::iota(slices.order.begin(), slices.order.end(), 0);
  std::rotate(slices.order.begin(), slices.order.begin() + axis, slices.order.begin() + axis + 1);
  SWIZZLE_ASSIGN_OR_RETURN(slices.array, Transposed(call, x, slices.order));
  slices.count = slices.array.shape[0];
  slices.length = ProductOf(slices.array.shape, 1, x.rank());
  return slices;
}

// Below 0, 0 or above it as a comes before b, is equal or comes after. What is not a number is equal to its like and
// comes last.
template <typename T>
int Compare(const T* a, const T* b, int64_t length) {
  for (int64_t i = 0; i < length; ++i) {
    const bool a_nan = elementwise::kIsNaN(a[i]), b_nan = elementwise::kIsNaN(b[i]);
    if (a_nan != b_nan) return a_nan ? 1 : -1;
    if (!a_nan && a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

// Groups of equal slices: `place` of each slice's group among them, and the first slice of each group.
struct Groups {
  Array place;                 // INT64 [slices]
  std::vector<int64_t> first;  // by group
  std::vector<int64_t> size;
};

template <typename T>
Groups GroupsOf(const T* x, int64_t length, bool sorted, Array order, Array place) {
  const auto slices = order.Mutable<int64_t>();
  const auto group_of = place.Mutable<int64_t>();
  std::iota(slices.begin(), slices.end(), 0);
  const auto compare = [&](int64_t a, int64_t b) { return Compare(x + a * length, x + b * length, length); };
  std::sort(slices.begin(), slices.end(), [&](int64_t a, int64_t b) {
    const int compared = compare(a, b);
    return compared != 0 ? compared < 0 : a < b;
  });
  Groups groups{place, {}, {}};
  for (size_t i = 0; i < slices.size(); ++i) {
    if (i == 0 || compare(slices[i - 1], slices[i]) != 0) {
      groups.first.push_back(slices[i]);
      groups.size.push_back(0);
    }
    ++groups.size.back();
    group_of[static_cast<size_t>(slices[i])] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  if (sorted) return groups;
  // As they first stand: which group was to be where is then found by sorting the groups.
  std::vector<int64_t> by_place(groups.first.size()), now(groups.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::ranges::sort(by_place, {}, [&](int64_t group) { return groups.first[static_cast<size_t>(group)]; });
  Groups standing{place, {}, {}};
  for (const int64_t group : by_place) {
    now[static_cast<size_t>(group)] = static_cast<int64_t>(standing.first.size());
    standing.first.push_back(groups.first[static_cast<size_t>(group)]);
    standing.size.push_back(groups.size[static_cast<size_t>(group)]);
  }
  for (int64_t& group : group_of) group = now[static_cast<size_t>(group)];
  return standing;
}

// The first slice of each group, with the axes as the input had them.
StatusOr<Array> FirstOfGroups(Call& call, const Slices& slices, const Groups& groups) {
  Shape shape = slices.array.shape;
  shape[0] = static_cast<int64_t>(groups.first.size());
  SWIZZLE_ASSIGN_OR_RETURN(Array firsts, call.New(slices.array.dtype, shape));
  const auto bytes = static_cast<size_t>(slices.length) * ElementBytes(slices.array.dtype);
  for (size_t i = 0; bytes > 0 && i < groups.first.size(); ++i) {
    std::memcpy(firsts.data.get() + i * bytes, slices.array.data.get() + static_cast<size_t>(groups.first[i]) * bytes,
                bytes);
  }
  if (slices.order.empty()) return firsts;
  std::vector<int64_t> inverse(slices.order.size());
  for (size_t d = 0; d < inverse.size(); ++d) inverse[static_cast<size_t>(slices.order[d])] = static_cast<int64_t>(d);
  return Transposed(call, firsts, inverse);
}

StatusOr<Array> AsArray(Call& call, const std::vector<int64_t>& list) {
  SWIZZLE_ASSIGN_OR_RETURN(Array array, call.New(DType::kInt64, {static_cast<int64_t>(list.size())}));
  std::ranges::copy(list, array.Mutable<int64_t>().begin());
  return array;
}

}  // namespace

StatusOr<Results> Unique(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t sorted, call.Int("sorted", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const Slices slices, SlicesOf(call));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.As(slices.array, ComputeType(slices.array.dtype)));
  SWIZZLE_ASSIGN_OR_RETURN(const Array order, call.New(DType::kInt64, {slices.count}));
  SWIZZLE_ASSIGN_OR_RETURN(const Array place, call.New(DType::kInt64, {slices.count}));
  // What the groups take besides, and how they are put in order.
  SWIZZLE_ASSIGN_OR_RETURN(const Array counted, call.New(DType::kInt64, {slices.count, 4}));
  Groups groups;
  VisitComputeType(
      x.dtype, [&]<typename T>(T) { groups = GroupsOf(x.As<T>().data(), slices.length, sorted != 0, order, place); });
  SWIZZLE_ASSIGN_OR_RETURN(Array y, FirstOfGroups(call, slices, groups));
  SWIZZLE_ASSIGN_OR_RETURN(Array first, AsArray(call, groups.first));
  SWIZZLE_ASSIGN_OR_RETURN(Array sizes, AsArray(call, groups.size));
  return Results{std::move(y), std::move(first), groups.place, std::move(sizes)};
}

}  // namespace swizzle::interpreter
