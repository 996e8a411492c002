# Swizzle::client, the client library.
find_dependency(Threads)
find_dependency(absl CONFIG)
# From version 22 on protobuf says itself what it links; CMake's own module knows no such versions.
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_dependency(Protobuf)
endif()
find_dependency(gRPC CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/SwizzleTargets.cmake)
