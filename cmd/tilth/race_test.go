//go:build race

package main

// memoryFactor is how many times as much memory programs take: the race detector keeps up to eight bytes for each of
// theirs.
const memoryFactor = 8
