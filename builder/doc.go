// Package builder compiles candidates: it replays their traces, prints their code, runs the compiler, and uploads what
// a runner needs. It knows the compiler through its backends, and no store. Begin with Handler.
package builder
