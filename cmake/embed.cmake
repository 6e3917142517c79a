# A file of ASCII as a string of a C file: cmake -DFILE=… -DOUT=… -DNAME=… -P embed.cmake
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
get_filename_component(from ${FILE} NAME)
file(WRITE ${OUT} "/* ${from} */\n#include \"show/html.h\"\n\nconst char ${NAME}[] = {${bytes}0};\n")
