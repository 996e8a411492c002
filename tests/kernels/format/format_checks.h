// What tests of formats have in common: that malformed matrices are rejected, and that rows stack.
#ifndef SWIZZLE_TESTS_KERNELS_FORMAT_FORMAT_CHECKS_H_
#define SWIZZLE_TESTS_KERNELS_FORMAT_FORMAT_CHECKS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

template <typename Matrix>
struct MalformationOf {
  const char* name;
  std::function<void(Matrix&)> apply;
  const char* message;  // a part of what Validate says
};

// `matrix` is well-formed before.
template <typename Matrix>
void ExpectRejected(Matrix matrix, const MalformationOf<Matrix>& malformation) {
  ASSERT_TRUE(matrix.Validate().ok()) << matrix.Validate();
  malformation.apply(matrix);
  const Status status = matrix.Validate();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(malformation.message));
}

// `above` has whole tiles of rows, `below` has not: so they stack in this order alone.
template <typename Matrix>
void ExpectStackInOrder(const Matrix& above, const Matrix& below) {
  const Matrix* const parts[] = {&above, &below};
  const auto stacked = Matrix::StackRows(parts);
  ASSERT_TRUE(stacked);
  EXPECT_TRUE(stacked->Validate().ok()) << stacked->Validate();
  std::vector<float> expected = above.ToDense().values;
  const std::vector<float> last = below.ToDense().values;
  expected.insert(expected.end(), last.begin(), last.end());
  EXPECT_EQ(stacked->ToDense().values, expected);
  const Matrix* const swapped[] = {&below, &above};
  EXPECT_FALSE(Matrix::StackRows(swapped));
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_FORMAT_FORMAT_CHECKS_H_
