# `cmake --install` installs the libraries, their headers, the command, and the files of find_package(poise) and
# pkg-config.
include(CMakePackageConfigHelpers)
set(POISE_CMAKE_DIRECTORY ${CMAKE_INSTALL_LIBDIR}/cmake/poise)

# poise::poise is the shared library if there is one. Then the static library is poise::static, and its users name it as
# a component, because it needs all dependencies: find_package(poise COMPONENTS static).
function(poise_install_library target name export)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT ${export}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(EXPORT ${export} NAMESPACE poise:: DESTINATION ${POISE_CMAKE_DIRECTORY})
endfunction()
if(POISE_SHARED_LIBRARY)
  poise_install_library(${POISE_SHARED_LIBRARY} poise poiseTargets)
endif()
if(NOT BUILD_SHARED_LIBS)
  set(name static)
  if(NOT POISE_SHARED_LIBRARY)
    set(name poise)
  endif()
  poise_install_library(libpoise ${name} poiseStaticTargets)
endif()

install(TARGETS poise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET poise-mpi)
  install(TARGETS poise-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)  # builds of some targets lack it
  install(FILES docs/man/poise-mpi.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_package_config_file(cmake/poiseConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/poiseConfig.cmake
  INSTALL_DESTINATION ${POISE_CMAKE_DIRECTORY})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/poiseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poiseConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/poiseConfigVersion.cmake
  DESTINATION ${POISE_CMAKE_DIRECTORY})
# Users of a static library link its dependencies themselves. If both libraries are installed, only `pkg-config
# --static` needs the dependencies. So they are in Libs.private: pkg-config requires packages of Requires in any case.
if(POISE_SHARED_LIBRARY)
  set(POISE_PC_LIBRARIES "Libs: -L\${libdir} -lpoise
Libs.private: -lfmt -ltbb -lhwy -lcrypto -lzstd -lz -ldeflate -lxxhash -lsimdjson -lutf8proc -lpcre2-8 -lyaml-cpp \
-lpthread -lstdc++ -lm")
else()
  set(POISE_PC_LIBRARIES "Libs: -L\${libdir} -lpoise -lpthread -lstdc++ -lm
Requires: fmt tbb libhwy libcrypto libzstd zlib libdeflate libxxhash simdjson libutf8proc libpcre2-8 yaml-cpp")
endif()
file(RELATIVE_PATH POISE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/poise.pc.in ${CMAKE_CURRENT_BINARY_DIR}/poise.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poise.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The command itself makes its manual pages and completions. A cross build cannot run it.
find_program(POISE_PAGES_PYTHON python3 HINTS /usr/bin)
if(POISE_PAGES_PYTHON AND NOT CMAKE_CROSSCOMPILING AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(pages ${CMAKE_CURRENT_BINARY_DIR}/share)
  add_custom_command(OUTPUT ${pages}/made
    COMMAND ${POISE_PAGES_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/make_man_pages.py $<TARGET_FILE:poise> ${pages}/man
    COMMAND $<TARGET_FILE:poise> completion bash > ${pages}/poise
    COMMAND $<TARGET_FILE:poise> completion zsh > ${pages}/_poise
    COMMAND $<TARGET_FILE:poise> completion fish > ${pages}/poise.fish
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/made
    DEPENDS poise ${PROJECT_SOURCE_DIR}/scripts/make_man_pages.py
    COMMENT "Making manual pages and completions")
  file(MAKE_DIRECTORY ${pages}/man)
  add_custom_target(poise_pages ALL DEPENDS ${pages}/made)
  install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${pages}/poise DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${pages}/_poise DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${pages}/poise.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
