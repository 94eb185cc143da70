// Package abi holds the C header shared by generated kernels, the measuring harness and compiled packages.
package abi
