# The packages that an installation is made of: what each has beside its programs or libraries, which the folders that
# build those install.
set(SWIZZLE_PACKAGES server tools client-dev cuda)
set(package_of_server swizzle-server)
set(package_of_tools swizzle-tools)
set(package_of_client-dev libswizzle-client-dev)
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
