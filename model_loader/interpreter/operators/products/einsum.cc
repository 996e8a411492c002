// Einsum, two operands at a time: each step moves dimensions so that it is a stack of matrix products.
#include <algorithm>
#include <map>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/products/products.h"
#include "model_loader/interpreter/values/strided.h"
#include "model_loader/semantics/equation.h"

namespace swizzle::interpreter {
namespace {

// An array with one label a dimension, each once.
struct Term {
  Array array;
  Labels labels;
};

bool Holds(const Labels& labels, int label) { return std::ranges::count(labels, label) > 0; }

// Dimensions by label; those of 1 go with any other.
using Sizes = std::map<int, int64_t>;

Status AddSizes(const Shape& shape, const Labels& labels, Sizes& sizes) {
  for (size_t d = 0; d < labels.size(); ++d) {
    const auto [place, is_new] = sizes.emplace(labels[d], shape[d]);
    if (is_new || place->second == shape[d] || shape[d] == 1) continue;
    if (place->second != 1) {
      return InvalidArgument("the equation gives dimensions of ", place->second, " and ", shape[d], " the same index");
    }
    place->second = shape[d];
  }
  return {};
}

// The term's elements with the dimensions `labels`, which are its own; a diagonal where one of its labels stands twice.
StatusOr<Array> Arranged(Call& call, const Term& term, const Labels& labels, const Sizes& sizes) {
  const Shape dense = DenseStrides(term.array.shape);
  Shape shape, strides;
  for (const int label : labels) {
    int64_t stride = 0;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      if (term.labels[d] == label && term.array.shape[d] != 1) stride += dense[d];
    }
    shape.push_back(sizes.at(label));
    strides.push_back(stride);
  }
  if (labels == term.labels && shape == term.array.shape) return term.array;
  SWIZZLE_ASSIGN_OR_RETURN(Array arranged, call.New(term.array.dtype, shape));
  if (arranged.elements() > 0) SWIZZLE_RETURN_IF_ERROR(CopyStrided(call, term.array, 0, strides, arranged));
  return arranged;
}

// The sum over each label that is not kept; diagonals are taken.
StatusOr<Term> SumOut(Call& call, const Term& term, const Labels& kept) {
  Labels left, summed;
  for (const int label : term.labels) {
    Labels& to = Holds(kept, label) ? left : summed;
    if (!Holds(to, label)) to.push_back(label);
  }
  Sizes sizes;
  SWIZZLE_RETURN_IF_ERROR(AddSizes(term.array.shape, term.labels, sizes));
  Labels order = left;
  order.insert(order.end(), summed.begin(), summed.end());
  SWIZZLE_ASSIGN_OR_RETURN(const Array arranged, Arranged(call, term, order, sizes));
  if (summed.empty()) return Term{arranged, left};
  const auto outer = static_cast<int64_t>(left.size());
  const int64_t length = ProductOf(arranged.shape, outer, arranged.rank());
  SWIZZLE_ASSIGN_OR_RETURN(Array sums,
                           call.New(arranged.dtype, Shape(arranged.shape.begin(), arranged.shape.begin() + outer)));
  VisitComputeType(arranged.dtype, [&]<typename T>(T) {
    using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;  // integers wrap
    const T* from = arranged.As<T>().data();
    for (T& to : sums.Mutable<T>()) {
      Sum sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += static_cast<Sum>(from[i]);
      to = static_cast<T>(sum);
      from += length;
    }
  });
  return Term{sums, left};
}

int64_t SizeOfAll(const Labels& labels, const Sizes& sizes) {
  int64_t size = 1;
  for (const int label : labels) size *= sizes.at(label);
  return size;
}

// The product of two terms, summed over what both have and is not kept. REQUIRES: what one has alone is kept.
StatusOr<Term> Combined(Call& call, const Term& a, const Term& b, const Labels& kept) {
  Labels batch, summed, rows, columns;
  for (const int label : a.labels) {
    if (!Holds(b.labels, label)) {
      rows.push_back(label);
    } else {
      (Holds(kept, label) ? batch : summed).push_back(label);
    }
  }
  std::ranges::copy_if(b.labels, std::back_inserter(columns), [&](int label) { return !Holds(a.labels, label); });
  Sizes sizes;
  SWIZZLE_RETURN_IF_ERROR(AddSizes(a.array.shape, a.labels, sizes));
  SWIZZLE_RETURN_IF_ERROR(AddSizes(b.array.shape, b.labels, sizes));
  const auto joined = [](Labels labels, const Labels& second, const Labels& third) {
    labels.insert(labels.end(), second.begin(), second.end());
    labels.insert(labels.end(), third.begin(), third.end());
    return labels;
  };
  SWIZZLE_ASSIGN_OR_RETURN(const Array left, Arranged(call, a, joined(batch, rows, summed), sizes));
  SWIZZLE_ASSIGN_OR_RETURN(const Array right, Arranged(call, b, joined(batch, summed, columns), sizes));
  const int64_t count = SizeOfAll(batch, sizes), depth = SizeOfAll(summed, sizes);
  SWIZZLE_ASSIGN_OR_RETURN(const Array product,
                           MatrixProduct(call, left.WithShape({count, SizeOfAll(rows, sizes), depth}),
                                         right.WithShape({count, depth, SizeOfAll(columns, sizes)})));
  const Labels labels = joined(batch, rows, columns);
  Shape shape;
  for (const int label : labels) shape.push_back(sizes.at(label));
  return Term{product.WithShape(shape), labels};
}

}  // namespace

StatusOr<Array> Einsum(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string text, call.String("equation", ""));
  std::vector<int64_t> ranks;
  std::vector<Term> terms;
  Sizes sizes;
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
    SWIZZLE_RETURN_IF_ERROR(CheckSameType(call.In(0), call.In(i)));
    ranks.push_back(call.In(i).rank());
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Equation equation, ReadEquation(text, ranks));
  for (size_t i = 0; i < ranks.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const Array array, call.As(call.In(i), ComputeType(call.In(i).dtype)));
    terms.push_back({array, equation.operands[i]});
    SWIZZLE_RETURN_IF_ERROR(AddSizes(array.shape, equation.operands[i], sizes));
  }
  const auto kept_after = [&](size_t term) {  // by what follows
    Labels kept = equation.result;
    for (size_t i = term + 1; i < terms.size(); ++i) {
      kept.insert(kept.end(), terms[i].labels.begin(), terms[i].labels.end());
    }
    return kept;
  };
  SWIZZLE_ASSIGN_OR_RETURN(Term result, SumOut(call, terms[0], kept_after(0)));
  for (size_t i = 1; i < terms.size(); ++i) {
    const Labels kept = kept_after(i);
    Labels kept_or_shared = kept;
    kept_or_shared.insert(kept_or_shared.end(), result.labels.begin(), result.labels.end());
    SWIZZLE_ASSIGN_OR_RETURN(const Term term, SumOut(call, terms[i], kept_or_shared));
    terms[i] = Term();
    SWIZZLE_ASSIGN_OR_RETURN(result, Combined(call, result, term, kept));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, Arranged(call, result, equation.result, sizes));
  return call.As(y, call.In(0).dtype);
}

}  // namespace swizzle::interpreter
