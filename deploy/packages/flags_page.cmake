# Makes a man page and a completion for bash of a program's page of flags, FLAGS.md, which a test holds against --help:
#   cmake -DPROGRAM=swizzle -DPAGE=client/FLAGS.md -DVERSION=0.1.0 -DMAN=swizzle.1 -DCOMPLETION=swizzle -P flags_page.cmake
cmake_minimum_required(VERSION 3.25)

# CMake's lists would split at semicolons, and not split in brackets: these stand for them meanwhile.
file(READ ${PAGE} text)
string(REPLACE ";" "<semicolon>" text "${text}")
string(REPLACE "[" "<open>" text "${text}")
string(REPLACE "]" "<close>" text "${text}")
string(REPLACE "\n" ";" lines "${text}")

# What roff would take for its own is escaped; `code` is bold.
function(roff out text)
  string(REPLACE "\\" "\\e" text "${text}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "`([^`]*)`" "\\\\fB\\1\\\\fR" text "${text}")
  string(REGEX REPLACE "^([.'])" "\\\\&\\1" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(sentence out text)
  if(NOT text MATCHES "\\.$")
    string(APPEND text .)
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# A row of a table, as an entry. A flag's placeholder is in italics; of an argument, which has a name, it is left out.
macro(add_row flag default meaning)
  if("${flag}" MATCHES "^-")
    string(REGEX MATCH "--[a-z-]+" name "${flag}")
    string(REGEX REPLACE "^(.*--[a-z-]+) ?" "" placeholder "${flag}")
    string(REGEX REPLACE "(--[a-z-]+).*" "\\1" spelt "${flag}")
    roff(entry "`${spelt}`")
    if(NOT placeholder STREQUAL "")
      list(APPEND value_flags "${name}")
      roff(placeholder_text "${placeholder}")
      string(APPEND entry "=\\fI${placeholder_text}\\fR")
    endif()
    list(APPEND flags "${name}")
    if(placeholder STREQUAL "DIR")
      list(APPEND folder_flags "${name}")
    endif()
  else()
    string(REGEX REPLACE " .*" "" argument "${flag}")
    set(entry "\\fI${argument}\\fR")
    if("${default}" MATCHES required)
      string(APPEND arguments " \\fI${argument}\\fR")
    else()
      string(APPEND arguments " <open>\\fI${argument}\\fR<close>")
    endif()
  endif()
  sentence(explanation "${meaning}")
  roff(explanation "${explanation}")
  if("${default}" MATCHES required)
    string(APPEND explanation " Required.")
  elseif("${default}" MATCHES "`([^`]+)`")
    roff(value "${CMAKE_MATCH_1}")
    string(APPEND explanation " Default: ${value}.")
  endif()
  string(APPEND entries ".TP\n${entry}\n${explanation}\n")
endmacro()

# What was collected of all commands, or of one, goes to the page and to the completion.
macro(end_part)
  if(command STREQUAL "")
    set(all_entries "${entries}${notes}")
    set(all_flags ${flags})
    set(all_summary "${summary}")
  else()
    roff(heading "${command}")
    sentence(summary "${summary}")
    roff(summary "${summary}")
    string(APPEND command_parts ".SS \"${heading}${arguments}\"\n${summary}\n${entries}${notes}")
    list(APPEND commands ${command})
    list(REMOVE_ITEM flags ${all_flags})
    list(JOIN flags " " words)
    string(APPEND cases "    ${command}) flags+=' ${words}' ;;\n")
  endif()
endmacro()

set(command "")
set(in_notes FALSE)
foreach(variable commands flags folder_flags value_flags entries notes arguments summary command_parts cases)
  set(${variable} "")
endforeach()
foreach(line IN LISTS lines)
  if(line MATCHES "^## ${PROGRAM} (.+)$")
    set(next ${CMAKE_MATCH_1})
    end_part()
    set(command ${next})
    foreach(variable flags entries notes arguments summary)
      set(${variable} "")
    endforeach()
  elseif(line MATCHES "^```")
    string(COMPARE NOTEQUAL "${line}" "```" in_notes)
    string(APPEND notes .PP\n)
  elseif(in_notes AND line MATCHES "^Example: (.+)$")
    roff(example "${CMAKE_MATCH_1}")
    string(APPEND notes ".PP\nExample:\n.PP\n.RS 4\n.nf\n${example}\n.fi\n.RE\n")
  elseif(in_notes)
    roff(note "${line}")
    if(line MATCHES "^Exit codes:")
      string(PREPEND note .PP\n)
    endif()
    string(APPEND notes "${note}\n")
  elseif(line MATCHES "^\\| `([^`]+)` \\|([^|]*)\\| (.*) \\|$")
    add_row("${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}" "${CMAKE_MATCH_3}")
  elseif(summary STREQUAL "" AND line MATCHES "^[A-Z]")
    set(summary "${line}")
  endif()
endforeach()
end_part()

roff(title ${PROGRAM})
string(REGEX REPLACE "\\.$" "" purpose "${all_summary}")
roff(purpose "${purpose}")
if(commands)
  set(synopsis "\\fB${title}\\fR \\fICOMMAND\\fR <open>\\fIFLAG\\fR...<close>")
  set(options_heading "OPTIONS OF ALL COMMANDS")
  set(command_parts ".SH COMMANDS\n${command_parts}")
else()
  set(synopsis "\\fB${title}\\fR <open>\\fIFLAG\\fR...<close>")
  set(options_heading OPTIONS)
endif()
set(others swizzle swizzle-pack swizzle-server)
list(REMOVE_ITEM others ${PROGRAM})
list(TRANSFORM others REPLACE "(.+)" ".BR \\1 (1)")
list(JOIN others "\n" others)
string(REPLACE "swizzle-" "swizzle\\-" others "${others}")
string(TOUPPER ${title} upper_title)
set(man ".\\\" Made of the page of flags.
.TH \"${upper_title}\" 1 \"\" \"Swizzle ${VERSION}\" \"Swizzle\"
.SH NAME
${title} \\- ${purpose}
.SH SYNOPSIS
${synopsis}
.SH \"${options_heading}\"
${all_entries}${command_parts}.SH \"SEE ALSO\"
${others}
")

list(JOIN commands " " commands)
list(JOIN all_flags " " all_flags)
foreach(variable folder_flags value_flags)
  list(REMOVE_DUPLICATES ${variable})
  list(JOIN ${variable} " " ${variable})
endforeach()
if(commands)
  set(find_command "
  local command='' each
  for each in \"\${COMP_WORDS<open>@<close>:1:COMP_CWORD - 1}\"; do
    if <open><open> -z $command && ' ${commands} ' == *\" $each \"* <close><close>; then command=$each; fi
  done
  case $command in
${cases}  esac")
  set(offer_commands "
  elif <open><open> -z $command && ' ${value_flags} ' != *\" $before \"* <close><close>; then
    mapfile -t COMPREPLY < <(compgen -W '${commands}' -- \"$word\")")
endif()
string(REPLACE "-" "_" function "_${PROGRAM}")
# Where nothing is offered, bash offers files. A word ends at "=", where readline is set up as it is usually.
set(completion "# Completion of ${PROGRAM} for bash. Made of the page of flags.
${function}() {
  local word=\${COMP_WORDS<open>COMP_CWORD<close>} before=\${COMP_WORDS<open>COMP_CWORD - 1<close>}
  if <open><open> $word == = <close><close>; then
    word=
  elif <open><open> $before == = <close><close>; then
    before=\${COMP_WORDS<open>COMP_CWORD - 2<close>}
  fi
  local flags='${all_flags}'${find_command}
  COMPREPLY=()
  if <open><open> ' ${folder_flags} ' == *\" $before \"* <close><close>; then
    mapfile -t COMPREPLY < <(compgen -d -- \"$word\")
    compopt -o filenames 2>/dev/null
  elif <open><open> $word == -* <close><close>; then
    mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\")${offer_commands}
  fi
}
complete -o default -F ${function} ${PROGRAM}
")

foreach(output man completion)
  string(REPLACE "<semicolon>" ";" ${output} "${${output}}")
  string(REPLACE "<open>" "[" ${output} "${${output}}")
  string(REPLACE "<close>" "]" ${output} "${${output}}")
endforeach()
file(WRITE ${MAN} "${man}")
file(WRITE ${COMPLETION} "${completion}")
