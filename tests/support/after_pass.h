// What the passes make of a model, as text.
#ifndef SWIZZLE_TESTS_SUPPORT_AFTER_PASS_H_
#define SWIZZLE_TESTS_SUPPORT_AFTER_PASS_H_

#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "model_loader/graph/print.h"
#include "model_loader/graph/verify.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::testing {

// The graph after all passes up to and including `last`, or the error. The last pass must apply `count` times.
inline std::string After(std::string_view last, int count, const OnnxBuilder& builder) {
  auto graph = builder.Read();
  if (!graph.ok()) return graph.status().ToString();
  for (const Pass& pass : Passes()) {
    const auto applied = pass.run(*graph);
    if (!applied.ok()) return applied.status().ToString();
    EXPECT_THAT(Verify(*graph), IsOk()) << pass.name;
    if (pass.name != last) continue;
    EXPECT_EQ(*applied, count) << pass.name;
    return "\n" + Print(*graph);
  }
  return "there is no such pass";
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_AFTER_PASS_H_
