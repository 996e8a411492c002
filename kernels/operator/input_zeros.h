// What share of an activation is zero on calibration data, and how its zeros lie together. Kernels that skip zeros of
// their input skip what holds nothing in many neighbours at once, so that the share alone says little about their time.
// Plain values.
//
// Worked example, a row of 2 channels of planes of 2 x 4, so that runs are of 4:
//   channel 0   0 0 0 0     channel 1   0 3 0 0
//               0 0 0 0                 0 0 0 0
// Half of the planes hold nothing, 3/4 of the runs, 15/16 of the elements; of the channels half, if no other row has
// anything in channel 0.
#ifndef SWIZZLE_KERNELS_OPERATOR_INPUT_ZEROS_H_
#define SWIZZLE_KERNELS_OPERATOR_INPUT_ZEROS_H_

namespace swizzle {

// Shares of all, 0 to 1, that hold nothing but zeros. What is empty consists of what is empty: none is less than the
// one before.
struct InputZeros {
  static constexpr int kRun = 32;

  double channels = 0.0;  // of all rows
  double planes = 0.0;    // a channel of a row
  double runs = 0.0;      // up to kRun neighbours in a line of a plane, from multiples of kRun on
  double elements = 0.0;
  bool operator==(const InputZeros&) const = default;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_INPUT_ZEROS_H_
