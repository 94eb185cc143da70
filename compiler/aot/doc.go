// Package aot compiles a program with a schedule for each of its tasks to a package, and loads and runs packages.
//
// A package is a tar archive: model.so has the kernels, the function that calls them, the thread pool and the C
// interface of tilth.h; weights.bin the constants as the kernels want them, which are used in place; manifest.json
// says what all that is.
package aot
