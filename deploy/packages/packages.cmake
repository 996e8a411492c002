# The packages that an installation is made of: what each has beside its programs or libraries, which the folders that
# build those install.
set(SWIZZLE_PACKAGES server tools engine dev client-dev engine-dev cuda)
set(package_of_server swizzle-server)
set(package_of_tools swizzle-tools)
set(package_of_engine libswizzle-engine)
set(package_of_dev libswizzle-dev)
set(package_of_client-dev libswizzle-client-dev)
set(package_of_engine-dev libswizzle-engine-dev)
set(package_of_cuda swizzle-cuda)
if(NOT SWIZZLE_HAS_CUDA)
  list(REMOVE_ITEM SWIZZLE_PACKAGES cuda)
endif()

foreach(component ${SWIZZLE_PACKAGES})
  set(docs ${CMAKE_INSTALL_DATADIR}/doc/${package_of_${component}})
  install(FILES LICENSE DESTINATION ${docs} RENAME copyright COMPONENT ${component})
  set(docs_of_${component} ${docs})
endforeach()
install(FILES README.md SECURITY.md DESTINATION ${docs_of_server} COMPONENT server)
install(DIRECTORY client/example/ DESTINATION ${docs_of_client-dev}/examples COMPONENT client-dev)
install(DIRECTORY server/engine/example/ DESTINATION ${docs_of_engine-dev}/examples COMPONENT engine-dev)

install(FILES deploy/packages/swizzle-server.service DESTINATION lib/systemd/system COMPONENT server)
if(SWIZZLE_HAS_CUDA)
  install(FILES deploy/packages/gpus.conf DESTINATION lib/systemd/system/swizzle-server.service.d COMPONENT cuda)
endif()

# Man pages and completions, of the pages of flags.
function(swizzle_flags_page program page component)
  set(man ${PROJECT_BINARY_DIR}/packages/${program}.1)
  set(completion ${PROJECT_BINARY_DIR}/packages/${program})
  set(script ${PROJECT_SOURCE_DIR}/deploy/packages/flags_page.cmake)
  add_custom_command(
    OUTPUT ${man} ${completion}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=${program} -DPAGE=${PROJECT_SOURCE_DIR}/${page} -DVERSION=${PROJECT_VERSION}
            -DMAN=${man} -DCOMPLETION=${completion} -P ${script}
    DEPENDS ${page} ${script}
    VERBATIM)
  add_custom_target(${program}-page ALL DEPENDS ${man} ${completion})
  install(FILES ${man} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
  install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT ${component})
endfunction()
swizzle_flags_page(swizzle-server server/FLAGS.md server)
swizzle_flags_page(swizzle client/FLAGS.md tools)
swizzle_flags_page(swizzle-pack model_loader/pack/FLAGS.md tools)

# Debian packages, by `cpack` in the build folder; deploy/build-packages is how to get them.
set(SWIZZLE_PACKAGE_MAINTAINER "Swizzle <root@localhost>" CACHE STRING "Who answers for the Debian packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME swizzle)
set(CPACK_PACKAGE_CONTACT ${SWIZZLE_PACKAGE_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL ${SWIZZLE_PACKAGES})
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/stage.cmake)
foreach(component ${SWIZZLE_PACKAGES})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package_of_${component}})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION science)
  set(CPACK_COMPONENT_${upper}_GROUP ${component})
endforeach()

# From the libraries that programs link to.
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ENGINE_PACKAGE_SHLIBDEPS ON)

set(scripts ${CMAKE_CURRENT_LIST_DIR})
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${scripts}/conffiles ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${scripts}/postinst)

# Code that protobuf and gRPC generated, and inline functions of Abseil, fit the releases that they were built with: as
# many of the numbers of the package's version have to be the same. Elsewhere than on Debian any version does.
function(swizzle_of_release out package components)
  set(needed ${package})
  execute_process(COMMAND dpkg-query --show --showformat=\${Version} ${package} OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "^([0-9]+:)?([0-9.]+)")
    set(epoch "${CMAKE_MATCH_1}")
    string(REPLACE . ";" numbers "${CMAKE_MATCH_2}")
    list(SUBLIST numbers 0 ${components} numbers)
    list(JOIN numbers . least)
    list(POP_BACK numbers last)
    math(EXPR next "${last} + 1")
    list(APPEND numbers ${next})
    list(JOIN numbers . most)
    set(needed "${package} (>= ${epoch}${least}), ${package} (<< ${epoch}${most}~)")
  endif()
  set(${out} "${needed}" PARENT_SCOPE)
endfunction()
swizzle_of_release(needs_absl libabsl-dev 1)
swizzle_of_release(needs_grpc libgrpc++-dev 2)
swizzle_of_release(needs_protobuf libprotobuf-dev 2)
# Debian's find_package(gRPC) wants the compilers' plugins to be there, too.
set(needs_dev "libswizzle-dev (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_CLIENT-DEV_PACKAGE_DEPENDS
    "${needs_dev}, ${needs_absl}, ${needs_grpc}, ${needs_protobuf}, protobuf-compiler-grpc")
set(CPACK_DEBIAN_ENGINE-DEV_PACKAGE_DEPENDS "${needs_dev}, libswizzle-engine (= ${PROJECT_VERSION}), ${needs_absl}")
set(CPACK_DEBIAN_ENGINE_PACKAGE_SECTION libs)
foreach(upper DEV CLIENT-DEV ENGINE-DEV)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION libdevel)
endforeach()
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS swizzle-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS swizzle-server)  # which `swizzle serve` starts

set(CPACK_DEBIAN_SERVER_DESCRIPTION
    "It serves ONNX models over gRPC by the Open Inference Protocol, keeps weights compressed, and runs each layer on
the kernel that was measured fastest, sparse or dense.")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION
    "swizzle asks a server, and measures it; swizzle-pack prunes, inspects, quantises and packs models.")
set(CPACK_DEBIAN_ENGINE_DESCRIPTION "Runs models as swizzle-server does, in the process of whoever links to it.")
set(CPACK_DEBIAN_ENGINE-DEV_DESCRIPTION
    "The engine in C++, to run models in one's own process: a header, and what CMake and pkg-config ask.")
set(CPACK_DEBIAN_DEV_DESCRIPTION "What CMake's find_package(Swizzle) reads, whichever of the libraries there are.")
set(CPACK_DEBIAN_CLIENT-DEV_DESCRIPTION "The client library in C++: an archive, headers, and what CMake and pkg-config ask.")
set(CPACK_DEBIAN_CUDA_DESCRIPTION
    "The module by which swizzle-server and swizzle-pack use NVIDIA's GPUs. CUDA's libraries are NVIDIA's to install.")
if(SWIZZLE_HAS_CUDA)
  # NVIDIA's libraries may be of no package, which dpkg-shlibdeps does not bear; the others are the server's, too.
  string(REPLACE . - cuda_release "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "swizzle-server (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS
      "libcublas-${cuda_release}, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}")
endif()
include(CPack)
