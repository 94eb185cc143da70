// Package opencl makes candidates for whatever has an OpenCL driver: OpenCL C with a table of launches, which the
// driver compiles where it is measured, and the harness that has it do so. Nothing is linked with OpenCL, and building
// needs no device. Begin with Backend.
package opencl
