// Package arm lists the instructions of Arm processors that kernels call.
package arm
