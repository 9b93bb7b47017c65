# Says what it was asked for.
set(PACKAGE_VERSION 22.1)
set(PACKAGE_VERSION_COMPATIBLE TRUE)
