// Package harness holds the C sources of the program that verifies and times kernels on a device.
package harness
