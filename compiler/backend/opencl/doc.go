// Package opencl compiles candidates for devices with an OpenCL driver: OpenCL C with a table of launches, which the
// driver compiles where it is measured, and the harness for that. Nothing links with OpenCL, and building requires no
// device. Start with Backend.
package opencl
