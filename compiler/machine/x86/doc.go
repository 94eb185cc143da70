// Package x86 lists the instructions of x86-64 processors that kernels call.
package x86
