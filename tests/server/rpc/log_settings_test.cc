#include "server/rpc/log_settings.h"

#include <gmock/gmock.h>

#include <string>

#include "server/telemetry/logging.h"
#include "tests/server/served_models.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Stub = inference::GRPCInferenceService::Stub;

class LogSettingsTest : public ServedModels {
 protected:
  ~LogSettingsTest() override { ChangeLogSettings(before_); }

  void ServeWithControl(bool allowed) {
    directory_.Write("echo/config.pbtxt", IdentityConfig());
    directory_.Write("echo/1/empty", "");
    ServerOptions options;
    if (allowed) options.control_address = "127.0.0.1:0";
    Serve(std::move(options));
  }

  grpc::Status Change() { return Order(&Stub::LogSettings, request_, response_); }
  auto& To(const std::string& name) { return (*request_.mutable_settings())[name]; }

  const LogSettings before_ = CurrentLogSettings();
  inference::LogSettingsRequest request_;
  inference::LogSettingsResponse response_;
};

TEST_F(LogSettingsTest, AnybodyMayRead) {
  ServeWithControl(false);
  ChangeLogSettings({.format = LogFormat::kJson, .info = false, .verbose_level = 3});
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(response_.settings_size(), 6);
  EXPECT_EQ(response_.settings().at("log_file").string_param(), "");
  EXPECT_FALSE(response_.settings().at("log_info").bool_param());
  EXPECT_TRUE(response_.settings().at("log_warning").bool_param());
  EXPECT_TRUE(response_.settings().at("log_error").bool_param());
  EXPECT_EQ(response_.settings().at("log_verbose_level").uint32_param(), 3u);
  EXPECT_EQ(response_.settings().at("log_format").string_param(), "json");
}

TEST_F(LogSettingsTest, OnlyControlMayChange) {
  ServeWithControl(false);
  To("log_info").set_bool_param(false);
  const grpc::Status status = Change();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("settings are changed at an address for operators"));
  EXPECT_EQ(CurrentLogSettings(), before_);
}

TEST_F(LogSettingsTest, ChangesWhatIsNamed) {
  ServeWithControl(true);
  To("log_warning").set_bool_param(false);
  To("log_verbose_level").set_uint32_param(2);
  To("log_format").set_string_param("ISO8601");
  ASSERT_TRUE(Change().ok());
  LogSettings wanted = before_;
  wanted.warning = false;
  wanted.verbose_level = 2;
  wanted.format = LogFormat::kIsoText;
  EXPECT_EQ(CurrentLogSettings(), wanted);
  EXPECT_EQ(response_.settings().at("log_format").string_param(), "ISO8601");
}

TEST_F(LogSettingsTest, WhatWasReadMayBeWrittenBack) {
  ServeWithControl(true);
  ASSERT_TRUE(Change().ok());
  ASSERT_TRUE(request_.ParseFromString(response_.SerializeAsString()));
  EXPECT_TRUE(Change().ok());
  EXPECT_EQ(CurrentLogSettings(), before_);
}

TEST_F(LogSettingsTest, WhatIsRefusedIsNamedAndChangesNothing) {
  ServeWithControl(true);
  const auto refused = [this](const std::string& named) {
    To("log_info").set_bool_param(!before_.info);
    const grpc::Status status = Change();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << named;
    EXPECT_THAT(status.error_message(), HasSubstr(named));
    EXPECT_EQ(CurrentLogSettings(), before_) << named;
    request_.Clear();
  };
  To("log_file").set_string_param("/etc/passwd");
  refused("log_file");
  To("log_format").set_string_param("xml");
  refused("not 'xml'");
  To("log_error").set_string_param("no");
  refused("log_error is true or false");
  To("log_verbose_level").set_bool_param(true);
  refused("log_verbose_level is a number");
  To("log_everything").set_bool_param(true);
  refused("'log_everything'");
}

TEST_F(LogSettingsTest, WhatIsTurnedOffIsNotWritten) {
  InitLogging(LogFormat::kText, LogLevel::kInfo);
  ChangeLogSettings({.info = false});
  testing::internal::CaptureStderr();
  Log(LogLevel::kInfo, "not to be seen");
  Log(LogLevel::kWarning, "to be seen");
  FlushLog();
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, HasSubstr("to be seen"));
  EXPECT_THAT(written, Not(HasSubstr("not to be seen")));
}

}  // namespace
}  // namespace swizzle
