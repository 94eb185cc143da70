// Package verify verifies the outputs of kernels. The outputs are in memory shared with the kernels' process
// and are compared with those of the reference, which runs in a different process. Start with Memory.
package verify
