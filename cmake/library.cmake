# The version of the interface that compiled programs rely on. It increases when a change of poise.h breaks them
# (tests/capi/abi.txt), not with each version of Poise. The name of Debian's package ends with it (debian/control).
set(POISE_SOVERSION 0)

# Sets the properties of a target that is libpoise, static or shared.
function(poise_library target)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME poise VERSION ${PROJECT_VERSION} SOVERSION ${POISE_SOVERSION}
    LINKER_LANGUAGE CXX)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PRIVATE ${POISE_DEPENDENCIES})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL SHARED_LIBRARY)
    # The library exports only the functions that poise.h and poise/*.hpp declare.
    set(map ${PROJECT_SOURCE_DIR}/cmake/poise.map)
    target_link_options(${target} PRIVATE LINKER:--version-script=${map})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
  endif()
endfunction()
