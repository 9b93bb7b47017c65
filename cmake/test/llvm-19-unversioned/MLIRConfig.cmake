# An MLIR of another release, as far as find_package looks at it.
set(LLVM_VERSION_MAJOR 19)
set(LLVM_VERSION_MINOR 1)
set(LLVM_PACKAGE_VERSION 19.1.7)
set(LLVM_DIR ${CMAKE_CURRENT_LIST_DIR})
