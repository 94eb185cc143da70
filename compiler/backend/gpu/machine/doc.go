// Package machine says what a multiprocessor of a GPU does in a cycle and what waiting costs it. All estimates of time
// are made of these figures, which are those of NVIDIA's Hopper as it is described; nothing was measured yet.
package machine
