// Package aot compiles a program, with a schedule for each of its tasks, to a package, and loads and runs packages.
// It uses backends only by their interface.
//
// A package is a tar archive. model.so contains the kernels, the function that calls them, the thread pool and the C
// interface of tilth.h. weights.bin contains the constants in kernel layout, and is used in place. manifest.json
// describes both. Start with Compile and Load.
package aot
