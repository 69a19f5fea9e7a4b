# stoker_embed(SOURCE FILE causes.json HEADER watch/explain/causes.h NAME stoker::watch::kCausesJson)
# Sets SOURCE to the path of a generated .cpp that defines NAME, a std::string_view of the file's bytes; HEADER declares
# it. The file may be empty, and is read anew when it changes.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(stoker_embed_script "${CMAKE_CURRENT_LIST_FILE}")
  function(stoker_embed source)
    cmake_parse_arguments(ARG "" "FILE;HEADER;NAME" "" ${ARGN})
    get_filename_component(file "${ARG_FILE}" ABSOLUTE)
    get_filename_component(stem "${file}" NAME_WE)
    set(out "${CMAKE_CURRENT_BINARY_DIR}/${stem}_data.cpp")
    add_custom_command(OUTPUT "${out}"
      COMMAND "${CMAKE_COMMAND}" "-DFILE=${file}" "-DOUT=${out}" "-DHEADER=${ARG_HEADER}" "-DNAME=${ARG_NAME}"
              -P "${stoker_embed_script}"
      DEPENDS "${file}" "${stoker_embed_script}"
      COMMENT "Embedding ${stem}")
    set(${source} "${out}" PARENT_SCOPE)
  endfunction()
  return()
endif()

# The script that the build runs. A string is one token to the compiler, an array of numbers one for each byte.
file(READ "${FILE}" hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" hex "${hex}")
string(REPLACE "\n" "\"\n\"" hex "${hex}")
file(WRITE "${OUT}" "#include \"${HEADER}\"\n\nstatic const char bytes[] =\n\"${hex}\";\n"
                    "const std::string_view ${NAME}(bytes, sizeof bytes - 1);\n")
