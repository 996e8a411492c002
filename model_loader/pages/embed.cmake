# Writes OUTPUT, C++ that defines swizzle::FUNCTION(), which returns the PageSources (page.h) of the files SOURCES: the page,
# its styles, and its scripts, in the order they are named.
set(page "")
set(style "")
set(script "")
foreach(source IN LISTS SOURCES)
  file(READ ${source} text)
  if(text MATCHES "\\)text\"")
    message(FATAL_ERROR "${source} contains the delimiter of raw strings")
  endif()
  if(source MATCHES "\\.html$")
    string(APPEND page "${text}")
  elseif(source MATCHES "\\.css$")
    string(APPEND style "${text}")
  else()
    string(APPEND script "${text}")
  endif()
endforeach()
file(WRITE ${OUTPUT} "#include \"model_loader/pages/page.h\"

namespace swizzle {

PageSources ${FUNCTION}();

PageSources ${FUNCTION}() {
  return {R\"text(${page})text\", R\"text(${style})text\", R\"text(${script})text\"};
}

}  // namespace swizzle
")
