// Package answer judges the outputs of kernels. They lie in memory that a runner shares with the kernels' process, and
// are compared with those of the reference, which runs in another process. Begin with Memory.
package answer
