//go:build race

package main

// memoryFactor is the memory overhead of the race detector, which keeps up to eight bytes per byte of the program.
const memoryFactor = 8
