# Turns the built page into a .cpp: `cmake -DPAGE=report.html -DOUT=page_data.cpp -P StokerReportPage.cmake`.
# Of an empty page the array is empty, and `stoker report --html` says how to build one.
file(READ "${PAGE}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
set(text "// Made from ${PAGE}; do not edit.\n#include <cstddef>\nnamespace stoker::watch {\n")
string(APPEND text "extern const unsigned char kReportPage[];\nextern const std::size_t kReportPageBytes;\n")
string(APPEND text "const unsigned char kReportPage[] = {\n${hex}0};\nconst std::size_t kReportPageBytes = ${bytes};\n}\n")
file(WRITE "${OUT}" "${text}")
