include(CheckCXXSourceCompiles)
# Where each third-party library is found; docs/dependencies.md says why it is here.
# Every one comes from the distribution and is linked dynamically.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

find_path(STOKER_NLOHMANN_INCLUDE nlohmann/json.hpp REQUIRED)
find_package(fmt REQUIRED)  # linked, not header-only: that mode costs 6 s of compile time a file

pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# The header by which the library chooses AVX2 or AVX-512 at run time, where it was built to: two to three times the
# speed of its SSE2. Not there on aarch64, whose NEON needs no choice.
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::xxhash)
check_cxx_source_compiles(
  "#include <xxh_x86dispatch.h>\nint main() { return XXH3_128bits(\"\", 0).low64 == 0; }" STOKER_XXHASH_DISPATCHES)
unset(CMAKE_REQUIRED_LIBRARIES)
if(STOKER_XXHASH_DISPATCHES)
  set(STOKER_XXHASH_HEADER "<xxh_x86dispatch.h>")
else()
  set(STOKER_XXHASH_HEADER "<xxhash.h>")
endif()
pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(spng REQUIRED IMPORTED_TARGET spng)
pkg_check_modules(webp REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(webpdemux REQUIRED IMPORTED_TARGET libwebpdemux)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(archive REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
find_package(GIF REQUIRED)
find_package(ZLIB REQUIRED)
if(STOKER_CLI)
  find_path(STOKER_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
endif()
if(STOKER_TESTS)
  find_package(GTest REQUIRED)
endif()
