// Package forkserver runs a program many times and loads it once. Loading clang, relocating a hundred megabytes of
// libraries, takes longer than compiling a small kernel with it. A library that is preloaded into the program stops it
// before its main begins; from then on it forks a child for each run, which goes on from there. The technique is that
// of fuzzers (AFL's fork server).
//
// It works with dynamically linked programs of glibc that have one thread when main begins; Start tells whether it
// does.
package forkserver
