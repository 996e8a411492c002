// A matrix of weights in any format. What a format has to give stands in the concept WeightFormat; everything that
// reads, writes, hashes, counts or converts weights goes through this class and kernels/format/format_list.h, and knows
// no format by name. Kernels ask for the one they take, with As or In.
//
// Value type with shared contents: copies are cheap. Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_FORMAT_WEIGHT_MATRIX_H_
#define SWIZZLE_KERNELS_FORMAT_WEIGHT_MATRIX_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"
#include "kernels/format/format.h"
#include "kernels/format/matrix_parts.h"

namespace swizzle {

// Asked for before anything else: whether a WeightMatrix can be copied must not decide whether it is a format.
template <typename M>
concept NamesItsFormat = requires {
  { M::kFormat } -> std::convertible_to<Format>;
};

// A format is a copyable, default-constructible value type with
//   kFormat      its own enumerator
//   VisitParts   its size, scalars and arrays (matrix_parts.h)
//   nnz          nonzeros; stored zeros may count
//   Validate     INVALID_ARGUMENT naming what breaks the invariant, for what a file may hold; nothing else is called
//                before it was OK
//   ToDense      the matrix with all its zeros; of places without values, ones
//   FromDense    the matrix again, as M or StatusOr<M>: an error where it cannot hold this one
//   Holds        whether it can hold a weight of this structure, and leaves out the zeros that the structure explains
// and, if it likes,
//   StackRows    as below: of at least one matrix of this format and as many columns
//   ForEachRow   as below; without it, a dense matrix is made for it
//   ValueRows    of each of its values, as they are stored, the row; without it, files hold quantised ones as real
//   numbers
template <typename M>
concept WeightFormat = NamesItsFormat<M> && std::default_initializable<M> && std::copyable<M> &&
    requires(const M& matrix, PartSizer& sizer, const DenseMatrix& dense, const Structure& structure) {
  M::VisitParts(matrix, sizer);
  { matrix.nnz() } -> std::same_as<int64_t>;
  { matrix.Validate() } -> std::same_as<Status>;
  { matrix.ToDense() } -> std::convertible_to<DenseMatrix>;
  { M::FromDense(dense) } -> std::convertible_to<StatusOr<M>>;
  { M::Holds(structure) } -> std::same_as<bool>;
};

template <typename M>
MatrixSize SizeOf(const M& matrix) {
  PartSizer sizer;
  M::VisitParts(matrix, sizer);
  return sizer.size;
}

class WeightMatrix {
 public:
  WeightMatrix() : WeightMatrix(DenseMatrix()) {}
  template <WeightFormat M>
  WeightMatrix(M matrix)  // NOLINT(google-explicit-constructor): a matrix of a format is one of any format
      : held_(std::make_shared<const HeldAs<M>>(std::move(matrix))) {}

  // An error where the format cannot hold this matrix. REQUIRES: not kNone.
  static StatusOr<WeightMatrix> FromDense(Format format, const DenseMatrix& dense);
  // INVALID_ARGUMENT where what the source gives is no matrix of this format and size. REQUIRES: not kNone.
  static StatusOr<WeightMatrix> Read(Format format, MatrixSize size, PartSource& source);
  // The rows of all, one matrix after another; none where formats or columns differ, or the format cannot stack them.
  // REQUIRES: at least one.
  static std::optional<WeightMatrix> StackRows(std::span<const WeightMatrix* const> matrices);

  Format format() const { return held_->format(); }
  MatrixSize size() const { return held_->size(); }
  int64_t nnz() const { return held_->nnz(); }
  Status Validate() const { return held_->Validate(); }
  DenseMatrix ToDense() const { return held_->ToDense(); }
  size_t StoredBytes() const { return held_->StoredBytes(); }
  void Write(PartSink& sink) const { held_->Write(sink); }
  // Of each of its values, as they are stored, the row; that of padding is any. None where the format doesn't say.
  std::optional<std::vector<uint32_t>> ValueRows() const { return held_->ValueRows(); }
  bool says_value_rows() const { return held_->says_value_rows(); }
  // The same places with other values.
  WeightMatrix WithValues(absl::FunctionRef<void(std::span<float>)> change) const { return held_->WithValues(change); }
  // Calls visit(row, its columns with nonzeros, rising) for every row in order.
  using RowVisitor = absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)>;
  void ForEachRow(RowVisitor visit) const { held_->ForEachRow(visit); }

  // The matrix, if it is in this format; else null. Valid as long as this or a copy.
  template <WeightFormat M>
  const M* As() const {
    return format() == M::kFormat ? &static_cast<const HeldAs<M>&>(*held_).matrix : nullptr;
  }
  // In this format, converted by way of a dense matrix where it is in another; an error where it cannot be.
  template <WeightFormat M>
  StatusOr<std::shared_ptr<const M>> In() const {
    if (const M* matrix = As<M>()) return std::shared_ptr<const M>(held_, matrix);
    StatusOr<M> made = M::FromDense(ToDense());
    if (!made.ok()) return made.status();
    return std::make_shared<const M>(*std::move(made));
  }

 private:
  class Held {
   public:
    virtual ~Held() = default;
    virtual Format format() const = 0;
    virtual MatrixSize size() const = 0;
    virtual int64_t nnz() const = 0;
    virtual Status Validate() const = 0;
    virtual DenseMatrix ToDense() const = 0;
    virtual size_t StoredBytes() const = 0;
    virtual void Write(PartSink& sink) const = 0;
    virtual std::optional<std::vector<uint32_t>> ValueRows() const = 0;
    virtual bool says_value_rows() const = 0;
    virtual WeightMatrix WithValues(absl::FunctionRef<void(std::span<float>)> change) const = 0;
    virtual void ForEachRow(RowVisitor visit) const = 0;
    virtual std::optional<WeightMatrix> StackRows(std::span<const WeightMatrix* const> matrices) const = 0;
  };

  template <WeightFormat M>
  class HeldAs final : public Held {
   public:
    static constexpr bool kSaysValueRows = requires(const M& m) { m.ValueRows(); };

    explicit HeldAs(M held) : matrix(std::move(held)) {}
    Format format() const override { return M::kFormat; }
    MatrixSize size() const override { return SizeOf(matrix); }
    int64_t nnz() const override { return matrix.nnz(); }
    Status Validate() const override { return matrix.Validate(); }
    DenseMatrix ToDense() const override { return matrix.ToDense(); }
    size_t StoredBytes() const override { return swizzle::StoredBytes(matrix); }
    void Write(PartSink& sink) const override {
      PartWriter writer(sink);
      M::VisitParts(matrix, writer);
    }
    std::optional<std::vector<uint32_t>> ValueRows() const override {
      if constexpr (kSaysValueRows) return matrix.ValueRows();
      return std::nullopt;
    }
    bool says_value_rows() const override { return kSaysValueRows; }
    WeightMatrix WithValues(absl::FunctionRef<void(std::span<float>)> change) const override {
      M changed = matrix;
      ValueChanger changer(change);
      M::VisitParts(changed, changer);
      return WeightMatrix(std::move(changed));
    }
    void ForEachRow(RowVisitor visit) const override {
      if constexpr (requires { matrix.ForEachRow(visit); }) {
        matrix.ForEachRow(visit);
      } else {
        matrix.ToDense().ForEachRow(visit);
      }
    }
    std::optional<WeightMatrix> StackRows(std::span<const WeightMatrix* const> matrices) const override {
      if constexpr (requires(std::span<const M* const> parts) { M::StackRows(parts); }) {
        std::vector<const M*> parts;
        for (const WeightMatrix* part : matrices) parts.push_back(part->As<M>());
        std::optional<M> stacked = M::StackRows(parts);
        if (stacked) return WeightMatrix(*std::move(stacked));
      }
      return std::nullopt;
    }

    const M matrix;
  };

  std::shared_ptr<const Held> held_;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_WEIGHT_MATRIX_H_
