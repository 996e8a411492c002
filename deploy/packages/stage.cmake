# Run by CPack before it makes packages: what lies outside of the prefix, which an installation elsewhere does not have,
# and what Debian wants compressed.
set(server ${CPACK_TEMPORARY_DIRECTORY}/server)
set(readable OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(MAKE_DIRECTORY ${server}/etc/default ${server}/var/lib/swizzle/models)
configure_file(${CMAKE_CURRENT_LIST_DIR}/swizzle-server.default ${server}/etc/default/swizzle-server COPYONLY
               FILE_PERMISSIONS ${readable})
file(GLOB pages ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/man1/*.1)
foreach(page ${pages})
  file(ARCHIVE_CREATE OUTPUT ${page}.gz PATHS ${page} FORMAT raw COMPRESSION GZip MTIME 0)
  file(CHMOD ${page}.gz PERMISSIONS ${readable})
  file(REMOVE ${page})
endforeach()
