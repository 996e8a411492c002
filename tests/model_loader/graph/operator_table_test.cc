// The operator table, held against the functions that its columns stand for.
#include "model_loader/graph/operator_table.h"

#include <algorithm>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/expansions/expand.h"
#include "model_loader/interpreter/operators/functions.h"
#include "model_loader/passes/canonicalise.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/point_function.h"
#include "model_loader/sequences/handlers.h"

namespace swizzle {
namespace {

TEST(OperatorTableTest, FindsEveryRowAndNothingElse) {
  for (const OnnxOperator& row : OnnxOperators()) {
    EXPECT_EQ(FindOnnxOperator(row.spec.domain, row.spec.op), &row) << row.spec.op;
    EXPECT_LE(row.spec.min_inputs, row.spec.max_inputs) << row.spec.op;
    EXPECT_GE(row.spec.max_outputs, 1) << row.spec.op;
    EXPECT_TRUE(row.spec.attributes.empty() || row.spec.attributes.ends_with(' ')) << row.spec.op;
    const bool used =
        row.plan != PlanUse::kNone || row.sequences != SequenceUse::kNone || row.interpreter.Runs() || row.is_expanded;
    EXPECT_TRUE(used) << row.spec.op;
  }
  EXPECT_GE(OnnxOperators().size(), 140u);
  EXPECT_EQ(FindOnnxOperator("", "Zzz"), nullptr);
  EXPECT_EQ(FindOnnxOperator("com.microsoft", "Conv"), nullptr);
  EXPECT_EQ(FindOnnxOperator("com.example", "Add"), nullptr);
}

TEST(OperatorTableTest, ReadersSeeTheirColumns) {
  EXPECT_NE(FindOperator("", "Conv"), nullptr);
  EXPECT_NE(FindOperator(kSwizzleDomain, "Affine"), nullptr);
  EXPECT_EQ(FindOperator("", "Affine"), nullptr);
  EXPECT_EQ(FindOperator("", "Exp"), nullptr);
  EXPECT_NE(FindSequenceOperator("", "Exp"), nullptr);
  EXPECT_NE(FindSequenceOperator("", "Conv"), nullptr) << "where nothing reads it";
  EXPECT_NE(FindSequenceOperator("com.microsoft", "Attention"), nullptr);
  EXPECT_EQ(FindSequenceOperator("", "TopK"), nullptr);
  EXPECT_NE(FindInterpretedOperator("", "TopK"), nullptr);
  EXPECT_EQ(FindInterpretedOperator("", "Attention"), nullptr);
  EXPECT_EQ(FindInterpretedOperator("com.microsoft", "Gelu"), nullptr);
  EXPECT_EQ(FindInterpretedOperator(kSwizzleDomain, "Conv"), nullptr);
}

TEST(OperatorTableTest, WhatIsWrittenOutIsWhatTheColumnSays) {
  size_t expanded = 0;
  for (const OnnxOperator& row : OnnxOperators()) {
    const expansions::Expansion* const expansion = expansions::FindExpansion(row.spec.domain, row.spec.op);
    const bool wants_some = expansion != nullptr && expansion->wants != nullptr;  // of nodes that are taken as they are
    EXPECT_EQ(expansion != nullptr && !wants_some, row.is_expanded) << row.spec.domain << " " << row.spec.op;
    EXPECT_EQ(FindExpandedOperator(row.spec.domain, row.spec.op) != nullptr, row.is_expanded) << row.spec.op;
    expanded += expansion != nullptr ? 1 : 0;
  }
  EXPECT_EQ(expanded, expansions::Expansions().size());
}

TEST(OperatorTableTest, AttributesOfOldOpsetsMayBeReadInAll) {
  const OperatorSpec& clip = *FindInterpretedOperator("", "Clip");
  EXPECT_TRUE(HasAttribute(clip, "min", 10));
  EXPECT_FALSE(HasAttribute(clip, "min", 17));
  EXPECT_TRUE(HasAttribute(clip, "min", 0));
  EXPECT_FALSE(HasAttribute(clip, "most", 0));
}

TEST(OperatorTableTest, PlansComputeWhatTheColumnSays) {
  for (const OnnxOperator& row : OnnxOperators()) {
    const std::string op(row.spec.op);
    const bool other_domain = !row.spec.domain.empty() && FindOnnxOperator("", op) != nullptr;
    EXPECT_EQ(IsCanonicalised(op) && !other_domain, row.plan == PlanUse::kComputed) << op;
    if (!row.spec.domain.empty()) continue;
    const bool folds = op == "Shape" || IsEvaluable(Node{op, "", "node", {}, {}, {}});
    EXPECT_TRUE(folds || row.plan != PlanUse::kFolded) << op;
    EXPECT_TRUE(!folds || row.plan == PlanUse::kFolded || row.plan == PlanUse::kComputed) << op;
  }
}

TEST(OperatorTableTest, SequencesInterpretWhatTheColumnSays) {
  for (const OnnxOperator& row : OnnxOperators()) {
    const std::string op(row.spec.op), domain(row.spec.domain);
    const std::vector<int> inputs(
        static_cast<size_t>(std::max(row.spec.min_inputs, op == "Max" || op == "Min" ? 2 : 1)));
    const Node node{op, domain, "node", inputs, {}, {{"to", int64_t{1}}}};
    const bool by_form = sequences::FindHandler(domain, op) != nullptr;
    EXPECT_EQ(by_form, row.sequences == SequenceUse::kByForm) << domain << " " << op;
    if (row.sequences == SequenceUse::kNone && row.plan == PlanUse::kNone) continue;  // never read
    const bool by_element = !by_form && PointFunctionOf(node, DType::kFloat32).has_value();
    EXPECT_EQ(by_element, row.sequences == SequenceUse::kByElement) << domain << " " << op;
  }
  EXPECT_EQ(sequences::FindHandler("", "SkipLayerNormalization"), nullptr);
}

TEST(OperatorTableTest, TheFallbackHasAFunctionForEachOfItsRows) {
  std::set<std::string_view> runs;
  for (const OnnxOperator& row : OnnxOperators()) {
    if (!row.interpreter.Runs()) continue;
    EXPECT_NE(interpreter::FindFunction(row.spec.op), nullptr) << row.spec.op;
    EXPECT_TRUE(row.interpreter.last_opset == 0 || row.interpreter.last_opset >= row.interpreter.first_opset)
        << row.spec.op;
    EXPECT_LE(row.interpreter.first_opset, interpreter::kLastOpset) << row.spec.op;
    EXPECT_TRUE(runs.insert(row.spec.op).second) << row.spec.op;  // whatever its domain
  }
  for (const interpreter::OperatorFunction& function : interpreter::OperatorFunctions()) {
    EXPECT_TRUE(runs.contains(function.op)) << function.op;
  }
  EXPECT_EQ(interpreter::OperatorFunctions().size(), runs.size());
  EXPECT_EQ(interpreter::FindFunction("Zzz"), nullptr);
}

}  // namespace
}  // namespace swizzle
