// Command tilth tunes neural-network kernels on real devices. It contains the command line and every service
// of the farm.
package main
