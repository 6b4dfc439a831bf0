# `cmake --install`: the library, its headers, the command, and what find_package(poise) and pkg-config need.
include(CMakePackageConfigHelpers)

install(TARGETS libpoise EXPORT poiseTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS poise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(POISE_CMAKE_DIRECTORY ${CMAKE_INSTALL_LIBDIR}/cmake/poise)
install(EXPORT poiseTargets NAMESPACE poise:: DESTINATION ${POISE_CMAKE_DIRECTORY})
configure_package_config_file(cmake/poiseConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/poiseConfig.cmake
  INSTALL_DESTINATION ${POISE_CMAKE_DIRECTORY})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/poiseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poiseConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/poiseConfigVersion.cmake
  DESTINATION ${POISE_CMAKE_DIRECTORY})

# A static library's users link its dependencies themselves.
if(BUILD_SHARED_LIBS)
  set(POISE_PC_REQUIRES "Requires.private")
else()
  set(POISE_PC_REQUIRES "Requires")
endif()
file(RELATIVE_PATH POISE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/poise.pc.in ${CMAKE_CURRENT_BINARY_DIR}/poise.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poise.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
