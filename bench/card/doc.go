// Command card does on a machine with an NVIDIA GPU all that wants one, in one run: conformance cases, a checker of
// memory, the card's rates, tuning, and comparisons with PyTorch in turns. Steps that were done with the same version
// are not done again. Begin to read at steps.go; scripts/gpu.sh runs it.
package main
