# Run by CPack before it makes packages: what lies outside of the prefix, which an installation elsewhere does not have.
set(server ${CPACK_TEMPORARY_DIRECTORY}/server)
set(readable OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(MAKE_DIRECTORY ${server}/etc/default ${server}/var/lib/swizzle/models)
configure_file(${CMAKE_CURRENT_LIST_DIR}/swizzle-server.default ${server}/etc/default/swizzle-server COPYONLY
               FILE_PERMISSIONS ${readable})
