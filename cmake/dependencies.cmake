# All dependencies are Debian packages, which scripts/install_dependencies.sh installs.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(TBB REQUIRED)
find_package(hwy REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)  # its headers: only src/ops/low_rank_fit.cpp includes them
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(simdjson REQUIRED IMPORTED_TARGET simdjson)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(yaml_cpp REQUIRED IMPORTED_TARGET yaml-cpp)
pkg_check_modules(curl REQUIRED libcurl)  # for its headers: src/remote/curl.cpp loads it when a URL needs it

pkg_check_modules(edit REQUIRED IMPORTED_TARGET libedit)  # only the command uses it
# Only the command poise-mpi uses MPI, and it is built if MPI is found. Sanitizers would report memory that MPI does not
# free.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(MPI_CXX_SKIP_MPICXX ON)  # its interface is C
  find_package(MPI COMPONENTS CXX QUIET)
endif()

# Some releases package this header-only library without a CMake target.
foreach(header IN ITEMS CLI/CLI.hpp)
  find_path(POISE_HEADER_DIRECTORY ${header} REQUIRED NO_CACHE)
endforeach()
if(NOT TARGET CLI11::CLI11)
  add_library(CLI11::CLI11 INTERFACE IMPORTED)
endif()

set(POISE_DEPENDENCIES
  Threads::Threads fmt::fmt TBB::tbb hwy::hwy OpenSSL::Crypto
  PkgConfig::simdjson PkgConfig::zstd PkgConfig::zlib PkgConfig::libdeflate PkgConfig::xxhash PkgConfig::utf8proc
      PkgConfig::pcre2 PkgConfig::yaml_cpp)
