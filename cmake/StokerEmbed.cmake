# cmake -DFILE=causes.json -DOUT=causes_data.cpp -DHEADER=watch/explain/causes.h -DNAME=stoker::watch::kCausesJson -P …
# A text file as a string in a source file. Pieces of 8 KiB: a longer literal is beyond what compilers must take.
file(READ "${FILE}" text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8192 piece)
  string(APPEND pieces "R\"stoker(${piece})stoker\"\n")
  math(EXPR at "${at} + 8192")
endwhile()
file(WRITE "${OUT}" "#include \"${HEADER}\"\n\nconst std::string_view ${NAME} =\n${pieces};\n")
