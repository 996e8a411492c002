# Swizzle::engine, the library that runs models in one's own process.
find_dependency(absl CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/SwizzleEngineTargets.cmake)
