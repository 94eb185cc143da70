// Package builder compiles candidates: it replays their traces, prints their code, runs the compiler, and uploads the
// results for runners. It uses the compiler through its backends and depends on no store. Start with Handler.
package builder
