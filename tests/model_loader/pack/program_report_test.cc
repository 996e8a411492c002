#include "model_loader/pack/program_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "nlohmann/json.hpp"
#include "tests/support/graph_text.h"
#include "tests/support/status_matchers.h"

namespace swizzle::pack {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::ParseGraph;
using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::ordered_json ObjectOf(const ProgramReport& report) {
  nlohmann::ordered_json object = {{"model", "m"}};
  AddProgram(report, object);
  return object;
}

TEST(ProgramReportTest, ShowsWhatRegionsTakeAndWhatIsLeft) {
  auto graph = ParseGraph(R"(
input %x: FP32[N,8]
constant %w: FP32[8,24]
%a = MatMul(%x,%w) "a_node" -> FP32[?]
%b = Tan(%a) "b_node" -> FP32[?]
%y = Tan(%b) "y_node" -> FP32[?]
output "y" = %y
)",
                          17);
  ASSERT_THAT(graph, IsOk());
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const regions::RegionalProgram regional = regions::PlanRegions(*interpreter::Program::Make(*std::move(graph)),
                                                                 *backend, {.threads = 1, .tuning_budget = {}});
  ASSERT_EQ(regional.regions.size(), 1u);
  ProgramReport report{regional, "Tan is none"};
  EXPECT_THAT(ProgramText(report), Not(HasSubstr("a run of")));
  EXPECT_FALSE(ObjectOf(report).contains("interpreted"));

  regions::RegionTimes& times = report.times.emplace();
  times.inputs = {{1, 8}};
  times.regions = {absl::Milliseconds(3)};
  times.interpreted = {{1, absl::Microseconds(400)}, {2, absl::Microseconds(600)}};
  EXPECT_THAT(ProgramText(report),
              HasSubstr("\na run of [1,8] takes 4.00 ms: regions 3.00 ms, attention between them 0.00 ms, interpreted "
                        "nodes 1.00 ms (25 %)\n  Tan x 2: 1.00 ms\n"));
  const auto object = ObjectOf(report);
  EXPECT_EQ(object["regions"][0]["microseconds"], 3000.0);
  EXPECT_EQ(object["interpreted"][1]["op"], "Tan");
  EXPECT_EQ(object["interpreted"][1]["microseconds"], 600.0);
  EXPECT_EQ(ScheduleText(regional), R"(
step  what      place  reads  last node
----  --------  -----  -----  ---------
   1  region 1  cpu    x      a_node
   2  Tan       cpu    #1     b_node
   3  Tan       cpu    #2     y_node
outputs: y of #3
)");
}

TEST(ProgramReportTest, TheScheduleSaysWhatRunsOnceForAllRequestsOfTheSameShapes) {
  auto graph = ParseGraph(R"(
input %x: FP32[N,8]
constant %w: FP32[8,8]
%a = MatMul(%x,%w) "a_node" -> FP32[?]
%s = Shape(%a) "s_node" -> INT64[?]
%f = Cast(%s) {to=1} "f_node" -> FP32[?]
%g = Tan(%f) "g_node" -> FP32[?]
%b = Tan(%a) "b_node" -> FP32[?]
%c = MatMul(%b,%w) "c_node" -> FP32[?]
output "c" = %c
output "g" = %g
)",
                          17);
  ASSERT_THAT(graph, IsOk());
  const std::unique_ptr<Backend> backend = NewCpuBackend();
  const regions::RegionalProgram regional = regions::PlanRegions(*interpreter::Program::Make(*std::move(graph)),
                                                                 *backend, {.threads = 1, .tuning_budget = {}});
  EXPECT_EQ(ScheduleText(regional), R"(
step  what      place  reads  last node
----  --------  -----  -----  ---------
   1  region 1  cpu    x      a_node
   2  Shape *   cpu    #1     s_node
   3  Cast *    cpu    #2     f_node
   4  Tan *     cpu    #3     g_node
   5  Tan       cpu    #1     b_node
   6  region 1  cpu    #5     c_node
outputs: c of #6, g of #4
* once for all requests of the same shapes
)");
  const auto schedule = ObjectOf({regional, ""})["schedule"];
  EXPECT_EQ(schedule[1]["once_for_shapes"], true);
  EXPECT_EQ(schedule[5]["kind"], "region");
  EXPECT_EQ(schedule[5]["region"], 1) << "the same layer again";
  EXPECT_EQ(schedule[5]["inputs"][0], "b");
}

}  // namespace
}  // namespace swizzle::pack
