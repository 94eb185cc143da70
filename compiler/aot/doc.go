// Package aot compiles a program, with a schedule for each of its tasks, to a package, and loads and runs packages. It
// knows backends by their interface.
//
// A package is a tar archive: model.so has the kernels, the function that calls them, the thread pool and the C
// interface of tilth.h; weights.bin has the constants as the kernels read them, used in place; manifest.json describes
// both. Begin with Compile and Load.
package aot
