// Package builder compiles candidates: it replays their traces, prints their code, runs the compiler and uploads what
// a runner needs to measure them.
package builder
