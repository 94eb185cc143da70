// Package abi holds the C header that generated kernels, the measuring harness and compiled packages share.
package abi
