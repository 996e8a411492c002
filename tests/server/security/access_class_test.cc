#include "server/security/access_class.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "proto/health.pb.h"

namespace swizzle {
namespace {

TEST(AccessClassTest, EveryRpcHasOne) {
  for (const auto* file : {inference::ModelInferRequest::descriptor()->file(),
                           grpc::health::v1::HealthCheckRequest::descriptor()->file()}) {
    ASSERT_GT(file->service_count(), 0);
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const std::string name = Concat("/", file->service(i)->full_name(), "/", file->service(i)->method(j)->name());
        EXPECT_TRUE(FindAccessRule(name).has_value()) << name << " can be called by nobody";
      }
    }
  }
}

TEST(AccessClassTest, NothingElseHasOne) {
  for (const char* name : {"", "//", "ModelInfer", "/inference.GRPCInferenceService/ModelInfe", "/metrics/",
                           "/inference.GRPCInferenceService/ModelInferX", "/inference.GRPCInferenceService/"}) {
    EXPECT_FALSE(FindAccessRule(name).has_value()) << name;
  }
}

TEST(AccessClassTest, WhatLoadsModelsIsForTheListenerOfOperators) {
  for (const char* method : {"RepositoryModelLoad", "RepositoryModelUnload"}) {
    const auto rule = FindAccessRule(Concat("/inference.GRPCInferenceService/", method));
    ASSERT_TRUE(rule.has_value());
    EXPECT_EQ(rule->needs, AccessClass::kControl);
    EXPECT_TRUE(rule->control_listener_only);
  }
}

}  // namespace
}  // namespace swizzle
